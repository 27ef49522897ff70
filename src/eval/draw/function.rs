//! Whether a function is declared at a place in a text, and where it ends.
//!
//! In: lines of Rust, C or C++. Out: a name, and the number of the last line.
//!
//! A look at signs, not a parse: the comments of a whole tree are taken out of it before anything is indexed, and a declaration that is
//! taken for none costs one question.
//!
//! **Invariant:** linear in the lines looked at, of which there are at most [`MOST_LINES`].

/// A function has no more lines.
const MOST_LINES: usize = 2_000;
/// A declaration has no more lines up to its body.
const MOST_DECLARED: usize = 40;

/// What a text is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tongue {
    Rust,
    /// C and C++.
    C,
}

/// Returns the name of the function that the first of these lines declares.
pub(super) fn declared(tongue: Tongue, lines: &[&str]) -> Option<String> {
    match tongue {
        Tongue::Rust => rust(lines.first()?),
        Tongue::C => c(lines),
    }
}

fn rust(line: &str) -> Option<String> {
    const BEFORE: [&str; 7] = ["pub", "default", "const", "async", "unsafe", "safe", "extern"];
    let mut rest = line.trim_start();
    loop {
        if let Some(name) = rest.strip_prefix("fn ") {
            let name: String =
                name.trim_start().chars().take_while(|sign| sign.is_alphanumeric() || *sign == '_').collect();
            return (!name.is_empty()).then_some(name);
        }
        let word =
            BEFORE.iter().find(|word| rest.strip_prefix(**word).is_some_and(|rest| rest.starts_with([' ', '('])))?;
        rest = rest[word.len()..].trim_start();
        // `pub(in path)`, `extern "C"`.
        if let Some(inner) = rest.strip_prefix('(') {
            rest = inner.split_once(')')?.1.trim_start();
        }
        if let Some(inner) = rest.strip_prefix('"') {
            rest = inner.split_once('"')?.1.trim_start();
        }
    }
}

fn c(lines: &[&str]) -> Option<String> {
    /// Words in front of a parenthesis that are no function's name, or that begin what is no function.
    const NO_NAME: [&str; 22] = [
        "if",
        "for",
        "while",
        "switch",
        "return",
        "sizeof",
        "alignas",
        "decltype",
        "__attribute__",
        "__declspec",
        "void",
        "int",
        "char",
        "bool",
        "float",
        "double",
        "long",
        "short",
        "unsigned",
        "const",
        "auto",
        "defined",
    ];
    const NO_FUNCTION: [&str; 8] =
        ["class ", "enum ", "namespace ", "using ", "typedef ", "friend class ", "return ", "#"];
    let first = lines.first()?.trim_start();
    if first.is_empty() || NO_FUNCTION.iter().any(|word| first.starts_with(word)) {
        return None;
    }
    let declaration = lines[..lines.len().min(MOST_DECLARED)].join("\n");
    let (mut angles, mut last) = (0_i32, ' ');
    for (at, sign) in declaration.char_indices() {
        match sign {
            '<' => angles += 1,
            '>' if last != '-' => angles = (angles - 1).max(0),
            '=' | ';' | '{' | '}' if angles == 0 && !declaration[..at].contains("operator") => return None,
            ';' | '{' | '}' => return None,
            '(' if angles == 0 || declaration[..at].contains("operator") => {
                let before = declaration[..at].trim_end();
                if let Some((_, operator)) = before.rsplit_once("operator") {
                    return Some(format!("operator{}", operator.trim()));
                }
                let is_of_name = |sign: char| sign.is_alphanumeric() || sign == '_' || sign == '~';
                let start = before.char_indices().rev().take_while(|(_, sign)| is_of_name(*sign)).last()?.0;
                let (front, name) = before.split_at(start);
                let is_macro = front.trim().is_empty() && !name.chars().any(char::is_lowercase);
                let is_name =
                    !NO_NAME.contains(&name) && !name.starts_with(|sign: char| sign.is_ascii_digit()) && !is_macro;
                return (is_name && ends(&declaration[at..])).then(|| name.to_owned());
            }
            _ => {}
        }
        if !sign.is_whitespace() {
            last = sign;
        }
    }
    None
}

/// Whether a body or a semicolon follows the parameters.
fn ends(behind: &str) -> bool {
    behind.contains([';', '{'])
}

/// Returns how many of these lines the function has that the first of them declares.
pub(super) fn length(tongue: Tongue, lines: &[&str]) -> usize {
    let mut state = State { depth: 0, in_comment: false };
    for (at, line) in lines.iter().take(MOST_LINES).enumerate() {
        if state.ends_in(tongue, line) {
            return at + 1;
        }
    }
    lines.len().min(1)
}

struct State {
    depth: i32,
    in_comment: bool,
}

impl State {
    /// Reads a line; whether the function ends in it.
    fn ends_in(&mut self, tongue: Tongue, line: &str) -> bool {
        let mut signs = line.chars().peekable();
        let mut last = ' ';
        while let Some(sign) = signs.next() {
            if self.in_comment {
                self.in_comment = !(last == '*' && sign == '/');
            } else {
                match sign {
                    '/' if signs.peek() == Some(&'/') => return false,
                    '/' if signs.peek() == Some(&'*') => {
                        signs.next();
                        self.in_comment = true;
                        last = ' ';
                        continue;
                    }
                    '"' => quoted(&mut signs, '"'),
                    '\'' if is_character(tongue, &signs) => quoted(&mut signs, '\''),
                    '(' | '[' | '{' => self.depth += 1,
                    ')' | ']' => self.depth -= 1,
                    '}' => {
                        self.depth -= 1;
                        if self.depth <= 0 {
                            return true;
                        }
                    }
                    ';' if self.depth <= 0 => return true,
                    _ => {}
                }
            }
            last = sign;
        }
        false
    }
}

/// Passes over what stands in quotes on this line.
fn quoted(signs: &mut std::iter::Peekable<std::str::Chars<'_>>, end: char) {
    while let Some(sign) = signs.next() {
        if sign == '\\' {
            signs.next();
        } else if sign == end {
            return;
        }
    }
}

/// Whether a single quote begins a character, and neither a lifetime nor a separator of digits.
fn is_character(tongue: Tongue, behind: &std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    let mut behind = behind.clone();
    let (first, second) = (behind.next(), behind.next());
    match tongue {
        Tongue::Rust => first == Some('\\') || second == Some('\''),
        Tongue::C => first == Some('\\') || second == Some('\'') || !first.is_some_and(char::is_alphanumeric),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_from_what_is_none() {
        let name = |tongue, text: &str| declared(tongue, &text.lines().collect::<Vec<_>>());
        for (text, expected) in [
            ("pub(crate) const unsafe extern \"C\" fn spawn<T>(&mut self) {", Some("spawn")),
            ("    fn a() -> u8;", Some("a")),
            ("pub const LIMIT: fn() = x;", None),
            ("pub struct A;", None),
            ("pub async fn wait() {}", Some("wait")),
            ("fn $name() {", None),
        ] {
            assert_eq!(name(Tongue::Rust, text).as_deref(), expected, "{text}");
        }
        for (text, expected) in [
            ("    explicit Node(Context* context);", Some("Node")),
            ("Node(Context* context);", Some("Node")),
            ("~Node() override;", Some("~Node")),
            ("URHO3D_OBJECT(Camera, Component);", None),
            ("std::function<void(int)> handler(int a);", Some("handler")),
            ("template <class T> T* GetComponent(bool recursive = false) const", None),
            ("template <class T>\nT* GetComponent(bool recursive = false) const\n{", Some("GetComponent")),
            ("bool operator <(const A& b) const { return a < b.a; }", Some("operator<")),
            ("int count_ = size(3);", None),
            ("void (*callback)(int);", None),
            ("class Node : public Base(x) {", None),
            ("struct A\n{\n    int a();\n};", None),
            ("#define X(a) a;", None),
            ("float Node::Get(float x) const {", Some("Get")),
            ("", None),
        ] {
            assert_eq!(name(Tongue::C, text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_function_ends_where_its_body_does() {
        let lines = |tongue, text: &str| length(tongue, &text.lines().collect::<Vec<_>>());
        assert_eq!(lines(Tongue::Rust, "fn a() {\n  if '{' == b\"}\"[0] { // }\n  }\n  /* } */\n}\nfn b() {}"), 5);
        assert_eq!(lines(Tongue::Rust, "fn a<'a>(x: &'a [u8; 3])\nwhere\n    T: X,\n{\n}\n"), 5);
        assert_eq!(lines(Tongue::Rust, "fn a(\n  b: u8,\n);\nfn c();"), 3);
        assert_eq!(lines(Tongue::C, "int a(int b = 3);\nint c();"), 1);
        assert_eq!(lines(Tongue::C, "A::A() :\n  b(1'000)\n{\n  c('\\'');\n}\n"), 5);
        assert_eq!(lines(Tongue::C, "int never("), 1);
    }
}
