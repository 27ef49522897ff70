//! The roles of the nodes of Rust.
//!
//! In: a node of the Rust grammar. Out: its role.
//!
//! **Invariant:** `impl` and `mod` only wrap; traits are types; a struct or an enum is one item with its fields.

use super::item::{Head, Role, field, up_to};
use super::symbol::bare;
use tree_sitter::Node;

/// Returns the role of a member of a file, a module, an `impl` or a trait.
pub(super) fn role<'t>(text: &str, node: Node<'t>) -> Role<'t> {
    let named = |end: &str| Head { name: bare(field(text, node, "name")), declared: up_to(node, end) };
    match node.kind() {
        "line_comment" | "block_comment" => {
            let comment = &text[node.byte_range()];
            if comment.starts_with("//!") || comment.starts_with("/*!") {
                Role::Preface
            } else {
                Role::Comment { documents: comment.starts_with("///") || comment.starts_with("/**") }
            }
        }
        "attribute_item" => Role::Attribute,
        "function_item" | "struct_item" | "enum_item" | "union_item" => Role::Item(named("body")),
        "macro_definition" => {
            let name = node.child_by_field_name("name");
            let end = name.map_or(node.end_byte(), |name| name.end_byte());
            Role::Item(Head { name: bare(field(text, node, "name")), declared: node.start_byte()..end })
        }
        "function_signature_item" => Role::Signature(named("body")),
        "trait_item" => match node.child_by_field_name("body") {
            Some(body) => Role::Type(named("body"), body),
            None => Role::Item(named("body")),
        },
        "impl_item" => {
            let name = node.child_by_field_name("type").map_or("", |implementor| type_name(text, implementor));
            let head = Head { name: bare(name), declared: up_to(node, "body") };
            match node.child_by_field_name("body") {
                Some(body) => Role::Wrapper(head, body),
                None => Role::Item(head),
            }
        }
        "mod_item" => match node.child_by_field_name("body") {
            Some(body) => Role::Wrapper(named("body"), body),
            None => Role::Minor(named("body")),
        },
        "foreign_mod_item" => match node.child_by_field_name("body") {
            Some(body) => Role::Wrapper(Head { name: String::new(), declared: up_to(node, "body") }, body),
            None => Role::Minor(named("body")),
        },
        "const_item" | "static_item" => Role::Minor(named("value")),
        "type_item" | "associated_type" => Role::Minor(named("body")),
        "ERROR" => Role::Wrapper(Head { name: String::new(), declared: 0..0 }, node),
        "use_declaration"
        | "extern_crate_declaration"
        | "macro_invocation"
        | "expression_statement"
        | "inner_attribute_item"
        | "let_declaration" => Role::Minor(Head { name: String::new(), declared: node.byte_range() }),
        _ => Role::Nothing,
    }
}

/// Returns the bare name of the type that an `impl` is for: `&'a mut a::Foo<T>` is `Foo`.
fn type_name<'a>(text: &'a str, mut node: Node<'_>) -> &'a str {
    // Types nest without limit; after a few levels the whole text is the name.
    for _ in 0..8 {
        let inner = match node.kind() {
            "generic_type" | "reference_type" | "pointer_type" => node.child_by_field_name("type"),
            "scoped_type_identifier" => node.child_by_field_name("name"),
            _ => None,
        };
        match inner {
            Some(inner) => node = inner,
            None => break,
        }
    }
    &text[node.byte_range()]
}
