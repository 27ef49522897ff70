//! Walks a syntax tree from container to container and marks where items start.
//!
//! In: a text and its tree. Out: marks in the order of the text.
//!
//! **Invariant:** the walk opens containers only (files, modules, types), never bodies of functions, at most [`DEEPEST`] levels
//! deep. So it is linear in the number of members and its stack is bounded on any text. A mark is made only if nothing precedes
//! the item on its first line.
//!
//! Comments and attributes belong to the item below them. If a blank line separates them, comments become a small piece. A block
//! that only wraps (`impl`, `namespace`, `#ifdef`) has no mark: its first line goes with its first member, because `impl Foo {`
//! alone answers no question. Containers are opened whatever their size: with a size limit, one more line would move every member
//! at once.

use super::language::Grammar;
use super::symbol::{declaration, qualified};
use super::{Mark, Rank, c_family, python, rust};
use crate::data::NoSyntax;
use std::ops::Range;
use tree_sitter::{Node, Tree};

/// The deepest level at which containers are opened; deeper ones stay part of the container around them.
const DEEPEST: usize = 24;

/// Most bytes of all marks: a text of many deeply nested items would give a hundred times its size.
const LARGEST_MARKS: usize = 32 << 20;

/// The role of a node, as its language's file decides.
pub(super) enum Role<'t> {
    /// A comment, which belongs to the next item; `documents` says that it is a doc comment.
    Comment { documents: bool },
    /// An attribute: always belongs to the next item.
    Attribute,
    /// A comment inside a file or module that documents the whole.
    Preface,
    /// An item with a chunk of its own.
    Item(Head),
    /// A declaration without a body: an item if it is documented, small otherwise.
    Signature(Head),
    /// Something small.
    Minor(Head),
    /// A type, and the node that holds its members.
    Type(Head, Node<'t>),
    /// A wrapper whose name qualifies its members, if it has one, and the node that holds them.
    Wrapper(Head, Node<'t>),
    /// No mark: it belongs to the item before it.
    Nothing,
}

/// The name and the declaration of an item.
pub(super) struct Head {
    /// Its unqualified name, or empty.
    pub(super) name: String,
    /// The bytes of its declaration, up to the body.
    pub(super) declared: Range<usize>,
}

/// Returns the marks of `text`, or that they would be too large.
pub(super) fn marks(grammar: Grammar, text: &str, tree: &Tree) -> Result<Vec<Mark>, NoSyntax> {
    let separator = if grammar == Grammar::Python { "." } else { "::" };
    let line = Line { start: 0, ink: ink(text, 0) };
    let mut walk = Walk { grammar, text, separator, marks: Vec::new(), bytes: 0, wrapper: None, line };
    walk.members(tree.root_node(), None, "", 0);
    if walk.is_full() { Err(NoSyntax::Names) } else { Ok(walk.marks) }
}

/// The start of a node.
#[derive(Clone, Copy)]
struct Start {
    at: usize,
    column: usize,
}

impl Start {
    fn of(node: Node<'_>) -> Self {
        Self { at: node.start_byte(), column: node.start_position().column }
    }
}

/// A line, and the position of its first non-blank character, which is searched once for all nodes of the line.
#[derive(Clone, Copy)]
struct Line {
    start: usize,
    ink: usize,
}

fn ink(text: &str, start: usize) -> usize {
    text[start..].find(|character: char| !character.is_whitespace()).map_or(text.len(), |at| start + at)
}

/// Comments and attributes that wait for their item.
struct Lead {
    start: Start,
    last_row: usize,
    documents: bool,
    /// Attributes belong to the next item, however far below.
    bound: bool,
}

struct Walk<'t> {
    grammar: Grammar,
    text: &'t str,
    separator: &'static str,
    marks: Vec<Mark>,
    /// The size of the marks, in bytes.
    bytes: usize,
    /// The last line that was searched.
    line: Line,
    /// The line of the wrapper that has no first mark yet.
    wrapper: Option<usize>,
}

impl<'t> Walk<'t> {
    /// Marks the members of `parent`; comments on the row `opened`, where it opened, do not belong to its members.
    fn members(&mut self, parent: Node<'t>, opened: Option<usize>, owner: &str, depth: usize) {
        let mut cursor = parent.walk();
        let mut lead: Option<Lead> = None;
        let mut last_row = opened;
        let mut in_preface = false;
        let mut more = cursor.goto_first_child();
        while more && !self.is_full() {
            let node = cursor.node();
            if node.is_named() && !node.byte_range().is_empty() {
                let role = role(self.grammar, self.text, node);
                let (first, last) = rows(node);
                let was_preface = std::mem::replace(&mut in_preface, matches!(role, Role::Preface));
                if lead.as_ref().is_some_and(|lead| !lead.bound && lead.last_row + 1 < first) {
                    self.detach(lead.take(), owner);
                }
                match role {
                    Role::Nothing => {}
                    Role::Comment { .. } if lead.is_none() && last_row == Some(first) => {}
                    Role::Comment { documents } => extend(&mut lead, node, last, documents, false),
                    Role::Attribute => extend(&mut lead, node, last, false, true),
                    Role::Preface => {
                        self.detach(lead.take(), owner);
                        if !was_preface {
                            self.mark(Start::of(node), Rank::Item, owner, owner.to_owned(), String::new());
                        }
                    }
                    role => {
                        self.item(node, role, lead.take(), owner, depth);
                        last_row = Some(last);
                    }
                }
            }
            more = cursor.goto_next_sibling();
        }
        self.detach(lead, owner);
    }

    /// Marks one member, and its content if it is a container.
    fn item(&mut self, node: Node<'t>, role: Role<'t>, lead: Option<Lead>, owner: &str, depth: usize) {
        let start = lead.as_ref().map_or_else(|| Start::of(node), |lead| lead.start);
        let documented = lead.is_some_and(|lead| lead.documents);
        let (rank, head, body) = match role {
            Role::Item(head) => (Rank::Item, head, None),
            Role::Signature(head) if documented => (Rank::Item, head, None),
            Role::Signature(head) | Role::Minor(head) => (Rank::Minor, head, None),
            Role::Type(head, body) => (Rank::Header, head, Some(body)),
            Role::Wrapper(head, body) => return self.wrapper(head, body, start, owner, depth),
            Role::Comment { .. } | Role::Attribute | Role::Preface | Role::Nothing => return,
        };
        let symbol = if head.name.is_empty() { String::new() } else { qualified(owner, self.separator, &head.name) };
        let name = declaration(&self.text[head.declared]);
        match body.filter(|_| depth < DEEPEST) {
            None => {
                let rank = if rank == Rank::Header { Rank::Item } else { rank };
                self.mark(start, rank, owner, symbol, name);
            }
            Some(body) => {
                self.mark(start, rank, owner, symbol.clone(), name);
                self.members(body, Some(body.start_position().row), &symbol, depth + 1);
            }
        }
    }

    /// Marks the members of a wrapper, the first of them from the wrapper's own start.
    fn wrapper(&mut self, head: Head, body: Node<'t>, start: Start, owner: &str, depth: usize) {
        let symbol = qualified(owner, self.separator, &head.name);
        let outermost = self.wrapper.is_none();
        if outermost {
            self.wrapper = self.line(start);
        }
        if depth < DEEPEST {
            // The wrapper itself may be the node (an error, a condition): it opens at the end of its first line.
            self.members(body, Some(body.start_position().row), &symbol, depth + 1);
        }
        if outermost && self.wrapper.is_some() {
            let rank = if head.name.is_empty() { Rank::Minor } else { Rank::Item };
            let symbol = if head.name.is_empty() { String::new() } else { symbol };
            let name = declaration(&self.text[head.declared]);
            self.mark(start, rank, owner, symbol, name);
        }
    }

    /// Returns the start of the line, if only white space precedes on it.
    fn line(&mut self, start: Start) -> Option<usize> {
        let line = start.at - start.column;
        if self.line.start != line {
            self.line = Line { start: line, ink: ink(self.text, line) };
        }
        (self.line.ink >= start.at).then_some(line)
    }

    fn is_full(&self) -> bool {
        self.bytes > LARGEST_MARKS
    }

    /// Marks comments without a close item.
    fn detach(&mut self, lead: Option<Lead>, owner: &str) {
        if let Some(lead) = lead {
            self.mark(lead.start, Rank::Minor, owner, String::new(), String::new());
        }
    }

    fn mark(&mut self, start: Start, rank: Rank, owner: &str, symbol: String, name: String) {
        let Some(start) = self.wrapper.take().or_else(|| self.line(start)) else { return };
        if self.marks.last().is_none_or(|last| last.start < start) {
            self.bytes += size_of::<Mark>() + owner.len() + symbol.len() + name.len();
            self.marks.push(Mark { start, rank, owner: owner.to_owned(), symbol, name });
        }
    }
}

fn extend(lead: &mut Option<Lead>, node: Node<'_>, last_row: usize, documents: bool, bound: bool) {
    let new = || Lead { start: Start::of(node), last_row, documents: false, bound: false };
    let lead = lead.get_or_insert_with(new);
    lead.last_row = last_row;
    lead.documents |= documents;
    lead.bound |= bound;
}

fn role<'t>(grammar: Grammar, text: &str, node: Node<'t>) -> Role<'t> {
    match grammar {
        Grammar::Rust => rust::role(text, node),
        Grammar::C | Grammar::Cpp => c_family::role(text, node),
        Grammar::Python => python::role(text, node),
    }
}

/// Returns the first and the last row of a node; a line comment of Rust ends at the start of the next row.
fn rows(node: Node<'_>) -> (usize, usize) {
    let (start, end) = (node.start_position(), node.end_position());
    let last = if end.column == 0 && end.row > start.row { end.row - 1 } else { end.row };
    (start.row, last)
}

/// Returns the text of the child in `field`, or nothing.
pub(super) fn field<'a>(text: &'a str, node: Node<'_>, field: &str) -> &'a str {
    node.child_by_field_name(field).map_or("", |child| &text[child.byte_range()])
}

/// Returns the bytes from the start of `node` to the start of its child in `field`, or its end.
pub(super) fn up_to(node: Node<'_>, field: &str) -> Range<usize> {
    node.start_byte()..node.child_by_field_name(field).map_or(node.end_byte(), |child| child.start_byte())
}
