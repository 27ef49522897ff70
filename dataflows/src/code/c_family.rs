//! The roles of the nodes of C and C++.
//!
//! In: a node of the C or C++ grammar. Out: its role.
//!
//! **Invariant:** namespaces, linkage blocks and preprocessor conditions only wrap; classes, structs and unions are types; a
//! function with a body is an item. A template has the role of the declaration inside it.

use super::item::{Head, Role, field};
use super::symbol::{bare, short};
use std::ops::Range;
use tree_sitter::Node;

/// The most declarators that are searched for a name: `int (*(*f)(int))[3]` has four.
const DEEPEST_DECLARATOR: usize = 16;

/// Returns the role of a member of a file, a namespace or a type.
pub(super) fn role<'t>(text: &str, node: Node<'t>) -> Role<'t> {
    inner_role(text, node, node, 0)
}

/// Returns the role of `node`, whose declaration starts with `outer` (the template around it).
fn inner_role<'t>(text: &str, outer: Node<'t>, node: Node<'t>, depth: usize) -> Role<'t> {
    let up_to = |end: Option<Node<'_>>| outer.start_byte()..end.map_or(node.end_byte(), |end| end.start_byte());
    let body = node.child_by_field_name("body");
    let minor = |name: String, declared: Range<usize>| Role::Minor(Head { name, declared });
    match node.kind() {
        "comment" => {
            // A macro that was hidden as a comment is an attribute; in the original text it starts with its name.
            if text[node.byte_range()].starts_with('/') { Role::Comment { documents: true } } else { Role::Attribute }
        }
        "access_specifier" | "attribute_declaration" => Role::Attribute,
        "template_declaration" if depth < DEEPEST_DECLARATOR => {
            let count = u32::try_from(node.named_child_count()).unwrap_or(u32::MAX);
            match node.named_child(count.saturating_sub(1)) {
                Some(inner) => inner_role(text, outer, inner, depth + 1),
                None => Role::Nothing,
            }
        }
        "namespace_definition" => match body {
            Some(body) => {
                Role::Wrapper(Head { name: bare(field(text, node, "name")), declared: up_to(Some(body)) }, body)
            }
            None => minor(String::new(), up_to(None)),
        },
        "linkage_specification" => match body.filter(|body| body.kind() == "declaration_list") {
            Some(body) => Role::Wrapper(Head { name: String::new(), declared: up_to(Some(body)) }, body),
            None => body.map_or(Role::Nothing, |body| match depth < DEEPEST_DECLARATOR {
                true => inner_role(text, outer, body, depth + 1),
                false => Role::Nothing,
            }),
        },
        "preproc_if" | "preproc_ifdef" | "preproc_else" | "preproc_elif" | "preproc_elifdef" | "ERROR" => {
            Role::Wrapper(Head { name: String::new(), declared: 0..0 }, node)
        }
        "class_specifier" | "struct_specifier" | "union_specifier" | "enum_specifier" => {
            specifier(text, node, up_to(body), "")
        }
        "function_definition" => {
            let head = Head { name: declared_name(text, node), declared: up_to(body) };
            if body.is_some() { Role::Item(head) } else { Role::Signature(head) }
        }
        "declaration" | "field_declaration" | "type_definition" => {
            let kind = node.child_by_field_name("type");
            let name = declared_name(text, node);
            if let Some(kind) = kind.filter(|kind| kind.child_by_field_name("body").is_some()) {
                return specifier(text, kind, up_to(kind.child_by_field_name("body")), &name);
            }
            let declarator = node.child_by_field_name("declarator");
            let value = declarator.and_then(|declarator| declarator.child_by_field_name("value"));
            let head = Head { name, declared: up_to(value) };
            if is_function(declarator) { Role::Signature(head) } else { Role::Minor(head) }
        }
        "concept_definition" => Role::Item(Head { name: bare(field(text, node, "name")), declared: up_to(None) }),
        "preproc_function_def" | "preproc_def" => {
            let value = node.child_by_field_name("value");
            let head = Head { name: short(field(text, node, "name")), declared: up_to(value) };
            // A macro over several lines is code; one on a line is a constant.
            let lines = node.end_position().row - node.start_position().row;
            if lines > 1 { Role::Item(head) } else { Role::Minor(head) }
        }
        "alias_declaration" => minor(bare(field(text, node, "name")), up_to(None)),
        "preproc_include"
        | "preproc_call"
        | "using_declaration"
        | "expression_statement"
        | "friend_declaration"
        | "static_assert_declaration"
        | "template_instantiation"
        | "namespace_alias_definition" => minor(String::new(), up_to(None)),
        kind if kind.ends_with("_statement") => minor(String::new(), up_to(None)),
        _ => Role::Nothing,
    }
}

/// Returns the role of a class, struct, union or enum; `alias` is its `typedef` name.
fn specifier<'t>(text: &str, node: Node<'t>, declared: Range<usize>, alias: &str) -> Role<'t> {
    let own = bare(field(text, node, "name"));
    let head = Head { name: if own.is_empty() { alias.to_owned() } else { own }, declared };
    match node.child_by_field_name("body") {
        None => Role::Minor(head),
        Some(_) if node.kind() == "enum_specifier" => Role::Item(head),
        Some(body) => Role::Type(head, body),
    }
}

/// Returns the name at the end of the declarators of `node`: `Foo::bar` in `int* Foo<T>::bar(int)`.
fn declared_name(text: &str, node: Node<'_>) -> String {
    let Some(mut declarator) = node.child_by_field_name("declarator") else {
        // A conversion is a separate declarator: `operator bool() const`.
        return String::new();
    };
    for _ in 0..DEEPEST_DECLARATOR {
        match declarator.child_by_field_name("declarator").or_else(|| only_child_of_wrapper(declarator)) {
            Some(inner) if declarator.kind() != "operator_cast" => declarator = inner,
            _ => break,
        }
    }
    let name = &text[declarator.byte_range()];
    match declarator.kind() {
        "operator_cast" => bare(name.split('(').next().unwrap_or(name)),
        _ => bare(name),
    }
}

/// References and parentheses hold their declarator without a field.
fn only_child_of_wrapper(node: Node<'_>) -> Option<Node<'_>> {
    let wraps = matches!(node.kind(), "reference_declarator" | "parenthesized_declarator" | "attributed_declarator");
    if wraps { node.named_child(0) } else { None }
}

fn is_function(declarator: Option<Node<'_>>) -> bool {
    let mut next = declarator;
    for _ in 0..DEEPEST_DECLARATOR {
        match next {
            Some(node) if node.kind() == "function_declarator" => return true,
            Some(node) => next = node.child_by_field_name("declarator").or_else(|| only_child_of_wrapper(node)),
            None => return false,
        }
    }
    false
}
