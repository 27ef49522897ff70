//! The roles of the nodes of Python.
//!
//! In: a node of the Python grammar. Out: its role.
//!
//! **Invariant:** classes are types whose members are opened, functions are items, every other statement is small.

use super::item::{Head, Role, field, up_to};
use super::symbol::short;
use tree_sitter::Node;

/// Returns the role of a statement of a module or a class.
pub(super) fn role<'t>(text: &str, node: Node<'t>) -> Role<'t> {
    let definition = match node.kind() {
        "decorated_definition" => node.child_by_field_name("definition").unwrap_or(node),
        _ => node,
    };
    let head = || Head { name: short(field(text, definition, "name")), declared: up_to(definition, "body") };
    match definition.kind() {
        "comment" => Role::Comment { documents: true },
        "class_definition" => match definition.child_by_field_name("body") {
            Some(body) => Role::Type(head(), body),
            None => Role::Item(head()),
        },
        "function_definition" => Role::Item(head()),
        "ERROR" => Role::Wrapper(Head { name: String::new(), declared: 0..0 }, node),
        kind if kind.ends_with("_statement") || kind == "decorated_definition" => {
            Role::Minor(Head { name: assigned(text, node), declared: 0..0 })
        }
        _ => Role::Nothing,
    }
}

/// Returns the name that a statement assigns to, or nothing.
fn assigned(text: &str, node: Node<'_>) -> String {
    let assignment = node.named_child(0).filter(|child| child.kind() == "assignment");
    let target = assignment.and_then(|assignment| assignment.child_by_field_name("left"));
    let target = target.filter(|target| target.kind() == "identifier");
    target.map_or_else(String::new, |target| short(&text[target.byte_range()]))
}
