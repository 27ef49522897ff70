//! Which items are found, and their names.

use super::*;
use crate::data::NoSyntax;
use expect_test::{Expect, expect};

/// Shows each mark as its line, rank, symbol and name.
fn check(language: &str, text: &str, expected: Expect) {
    let Outline::Marks(marks) = outline(language, text) else { panic!("the text is within the parser's budgets") };
    let mut shown = String::new();
    for mark in marks {
        let line = text[..mark.start].matches('\n').count() + 1;
        let owner = if mark.rank == Rank::Minor { format!(" of {:?}", mark.owner) } else { String::new() };
        shown += &format!("{line} {:?}{owner} {:?} {:?}\n", mark.rank, mark.symbol, mark.name);
    }
    expected.assert_eq(&shown);
}

#[test]
fn rust_items_are_named_by_their_owners() {
    let text = "\
//! What the file is.
//! Second line.
#![allow(missing_docs)]

use std::fmt;

// A banner.

/// Documents the world.
#[derive(Debug)]
pub struct World<T> {
    entities: Vec<T>,
}

const LIMIT: usize = 10;

impl<'a, T: Clone> fmt::Debug for a::World<T>
where
    T: Copy,
{
    type X = u8;
    /// Spawns.
    pub fn spawn<B>(&mut self, // who
        bundle: B) -> Entity { todo!() }
    fn despawn(&mut self) {} // trailing
}

pub trait Plugin: Any {
    fn name(&self) -> &str;
    /// Builds.
    fn build(&self, app: &mut App);
    fn finish(&self) {}
}

macro_rules! all_tuples { ($x:ident) => {} }

impl Plugin for Empty {}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn works() {}
}
";
    check(
        "rust",
        text,
        expect![[r##"
        1 Item "" ""
        3 Minor of "" "" "#![allow(missing_docs)]"
        5 Minor of "" "" "use std::fmt"
        7 Minor of "" "" ""
        9 Item "World" "pub struct World<T>"
        15 Minor of "" "LIMIT" "const LIMIT: usize"
        17 Minor of "World" "World::X" "type X = u8"
        22 Item "World::spawn" "pub fn spawn<B>(&mut self, bundle: B) -> Entity"
        25 Item "World::despawn" "fn despawn(&mut self)"
        28 Header "Plugin" "pub trait Plugin: Any"
        29 Minor of "Plugin" "Plugin::name" "fn name(&self) -> &str"
        30 Item "Plugin::build" "fn build(&self, app: &mut App)"
        32 Item "Plugin::finish" "fn finish(&self)"
        35 Item "all_tuples" "macro_rules! all_tuples"
        37 Item "Empty" "impl Plugin for Empty"
        39 Minor of "tests" "" "use super::*"
        42 Item "tests::works" "fn works()"
    "##]],
    );
}

#[test]
fn cpp_items_are_found_behind_macros_conditions_and_templates() {
    let text = "\
// Copyright.

#pragma once
#include \"A.h\"
#define ONE 1

#ifndef GUARD
namespace bevy { namespace ecs {

/** A thing in the world. */
UCLASS(BlueprintType, meta = (DisplayName = \"Actor\"))
class ENGINE_API AActor : public UObject
{
    GENERATED_BODY()
public:
    AActor();
    UPROPERTY(EditAnywhere)
    int32 Health = 100;
    /** Damages it. */
    UFUNCTION(BlueprintCallable)
    virtual void TakeDamage(float Amount) override;
    bool IsAlive() const { return Health > 0; }
    operator bool() const { return true; }
};

template <typename T>
T* Pool<T>::Acquire(int n)
{
    return nullptr;
}

Foo& AActor::operator=(const Foo& other) { return *this; }
AActor::~AActor() {}

enum class Mode : uint8 { A, B };
typedef struct { int x; int y; } Point;
static const int kTable[] = { 1, 2, 3 };
}}
#endif
extern \"C\" {
int c_function(void);
}
";
    check(
        "cpp",
        text,
        expect![[r##"
        1 Minor of "" "" ""
        3 Minor of "" "" "#pragma once"
        4 Minor of "" "" "#include \"A.h\""
        5 Minor of "" "ONE" "#define ONE"
        7 Header "bevy::ecs::AActor" "class ENGINE_API AActor : public UObject"
        14 Minor of "bevy::ecs::AActor" "bevy::ecs::AActor::AActor" "AActor()"
        17 Minor of "bevy::ecs::AActor" "bevy::ecs::AActor::Health" "int32 Health = 100"
        19 Item "bevy::ecs::AActor::TakeDamage" "virtual void TakeDamage(float Amount) override"
        22 Item "bevy::ecs::AActor::IsAlive" "bool IsAlive() const"
        23 Item "bevy::ecs::AActor::operator bool" "operator bool() const"
        26 Item "bevy::ecs::Pool::Acquire" "template <typename T> T* Pool<T>::Acquire(int n)"
        32 Item "bevy::ecs::AActor::operator=" "Foo& AActor::operator=(const Foo& other)"
        33 Item "bevy::ecs::AActor::~AActor" "AActor::~AActor()"
        35 Item "bevy::ecs::Mode" "enum class Mode : uint8"
        36 Header "bevy::ecs::Point" "typedef struct"
        37 Minor of "bevy::ecs" "bevy::ecs::kTable" "static const int kTable[]"
        40 Minor of "" "c_function" "int c_function(void)"
    "##]],
    );
}

#[test]
fn c_functions_and_types_are_found() {
    let text = "\
#include <stdio.h>
struct vm { int pc; };
typedef unsigned int u32;
static int *run(struct vm *vm, const char *code)
{
    return 0;
}
#define SWAP(a, b) \\
    do { int t = a; \\
         a = b; b = t; } while (0)
int global = 3;
";
    check(
        "c",
        text,
        expect![[r##"
        1 Minor of "" "" "#include <stdio.h>"
        2 Header "vm" "struct vm"
        3 Minor of "" "u32" "typedef unsigned int u32"
        4 Item "run" "static int *run(struct vm *vm, const char *code)"
        8 Item "SWAP" "#define SWAP(a, b)"
        11 Minor of "" "global" "int global"
    "##]],
    );
}

#[test]
fn python_classes_functions_and_statements_are_found() {
    let text = "\
\"\"\"Module.\"\"\"
import os
from a import b

LIMIT = 3

# Above the class.
@dataclass
class World(Base):
    \"\"\"Doc.\"\"\"
    size: int = 3

    @property
    def name(self,
             x) -> str:
        return ''

    class Inner:
        def run(self): pass

async def main(): ...

if __name__ == '__main__':
    main()
";
    check(
        "python",
        text,
        expect![[r#"
        1 Minor of "" "" ""
        2 Minor of "" "" ""
        3 Minor of "" "" ""
        5 Minor of "" "LIMIT" ""
        7 Header "World" "class World(Base)"
        10 Minor of "World" "" ""
        11 Minor of "World" "World.size" ""
        13 Item "World.name" "def name(self, x) -> str"
        18 Header "World.Inner" "class Inner"
        19 Item "World.Inner.run" "def run(self)"
        21 Item "main" "async def main()"
        23 Minor of "" "" ""
    "#]],
    );
}

#[test]
fn broken_code_still_has_the_items_around_the_error() {
    let text = "fn a() {}\n\nfn b( {\n\nfn c() {}\n";
    check(
        "rust",
        text,
        expect![[r#"
        1 Item "a" "fn a()"
        5 Item "c" "fn c()"
    "#]],
    );
}

#[test]
fn containers_are_opened_to_a_depth_and_no_further() {
    let depth = 3_000;
    let text = format!("{}fn x() {{}}\n{}", "mod a {\n".repeat(depth), "}\n".repeat(depth));
    let Outline::Marks(marks) = outline("rust", &text) else { panic!("the text is within the parser's budgets") };
    assert!(marks.len() <= 2, "one wrapper has one mark");
}

#[test]
fn a_budget_that_is_spent_is_named() {
    let members = "const A: u8 = 1;\n".repeat(60_000);
    let named = format!("{}{members}{}", format!("mod {} {{\n", "a".repeat(190)).repeat(5), "}\n".repeat(5));
    let grown = |unit: &str| unit.repeat((1 << 20) / unit.len());
    for (language, text, expected) in [
        ("c", grown("(a)(b)*"), NoSyntax::Steps),
        ("rust", grown("r#\""), NoSyntax::Read),
        ("rust", grown("\""), NoSyntax::Errors),
        ("c", grown("a::"), NoSyntax::Errors),
        ("rust", grown("{"), NoSyntax::Open),
        ("rust", named, NoSyntax::Names),
        ("fortran", grown("end\n"), NoSyntax::Grammar),
    ] {
        let start: String = text.chars().take(20).collect();
        assert_eq!(InProcess.outline(language, &text), Ok(Outline::Without(expected)), "{language}: {start}");
    }
}

#[test]
fn what_many_members_would_repeat_is_left_out() {
    let text = format!("class {}:\n    def run(self): pass\n", "a".repeat(3_000));
    let Outline::Marks(marks) = outline("python", &text) else { panic!("the text is within the parser's budgets") };
    assert_eq!(marks[1].symbol, format!("{}.run", "a".repeat(200)));
}
