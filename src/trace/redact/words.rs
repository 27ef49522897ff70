//! The words that redaction keeps: public words of languages and tools.
//!
//! In: a token. Out: whether it stays. **Invariant:** the lists are public and fixed; a token stays only as a whole, so `self`
//! stays and the `self` in `selfTest` does not.

use rustc_hash::FxHashSet;
use std::sync::OnceLock;

/// Keywords and primitive types of the languages with a grammar, directives, and the macros that are hidden from the
/// C++ grammar.
const KEYWORDS: &str = "
as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub
ref return self Self static struct super trait true type union unsafe use where while yield macro_rules derive cfg test
bool char str u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 String Vec Option Some None Result Ok Err Box
alignas alignof and and_eq asm auto bitand bitor case catch char8_t char16_t char32_t class co_await co_return co_yield
compl concept consteval constexpr constinit const_cast decltype default delete do double dynamic_cast explicit export
float friend goto inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected
public register reinterpret_cast requires restrict short signed sizeof static_assert static_cast switch template this
thread_local throw try typedef typeid typename unsigned using virtual void volatile wchar_t xor xor_eq final override
NULL define undef include ifdef ifndef endif elif pragma once error warning line defined std size_t int8_t int16_t
int32_t int64_t uint8_t uint16_t uint32_t uint64_t int8 int16 int32 int64 uint8 uint16 uint32 uint64 TEXT
False True None assert def del except finally from global import is lambda nonlocal pass raise with print
UCLASS USTRUCT UENUM UINTERFACE UFUNCTION UPROPERTY UPARAM UMETA UDELEGATE UE_DEPRECATED GENERATED_BODY
GENERATED_UCLASS_BODY GENERATED_USTRUCT_BODY GENERATED_UINTERFACE_BODY
UL ULL LL ul ull ll px em
";

/// Keys without which a manifest has no module name.
const MANIFESTS: &str = "package name project tool poetry metadata module workspace version edition dependencies";

/// Files that are recognised by their whole name.
const NAMES: [&str; 16] = [
    "Cargo.toml",
    "Cargo.lock",
    "pyproject.toml",
    "setup.cfg",
    "package.json",
    "go.mod",
    "CMakeLists.txt",
    "Makefile",
    "GNUmakefile",
    "SConstruct",
    "SConscript",
    "SCsub",
    "mod.rs",
    "lib.rs",
    "main.rs",
    "__init__.py",
];

/// Extensions of two parts.
const DOUBLE_ENDINGS: [&str; 2] = [".Build.cs", ".Target.cs"];

/// Extensions by which rules and people recognise a file.
const ENDINGS: &str = "
rs c h hpp hh hxx cc cpp cxx inl ipp tpp cu cuh py pyi pyw md markdown mdx wgsl wesl hlsl hlsli fx fxh usf ush glsl vert
frag geom comp metal cs js mjs cjs jsx ts mts cts tsx java kt kts go swift m mm lua gd rb zig sh bash zsh fish bat cmd
ps1 psm1 sql cmake mk toml lock json jsonc json5 uplugin uproject gltf ipynb yml yaml ron ini cfg conf properties tscn
tres godot csv tsv txt rst html htm css xml svg png jpg jpeg gif ktx2 dds hdr exr tga glb bin ogg wav mp3 flac ttf otf
uasset umap pak pdf zip gz patch diff proto gitignore gitattributes
";

fn set(words: &'static str) -> impl Iterator<Item = &'static str> {
    words.split_ascii_whitespace()
}

/// Returns whether a token stays unchanged.
pub(super) fn is_kept(token: &str) -> bool {
    static KEPT: OnceLock<FxHashSet<&'static str>> = OnceLock::new();
    KEPT.get_or_init(|| set(KEYWORDS).chain(set(MANIFESTS)).collect()).contains(token)
}

/// Splits the name of a file into what is replaced and the ending that stays.
pub(super) fn kept_ending(name: &str) -> (&str, &str) {
    static KEPT: OnceLock<FxHashSet<&'static str>> = OnceLock::new();
    if NAMES.contains(&name) {
        return ("", name);
    }
    if let Some(ending) = DOUBLE_ENDINGS.iter().find(|ending| name.ends_with(*ending)) {
        return name.split_at(name.len() - ending.len());
    }
    let endings = KEPT.get_or_init(|| set(ENDINGS).collect());
    match name.rfind('.') {
        Some(dot) if endings.contains(name[dot + 1..].to_ascii_lowercase().as_str()) => name.split_at(dot),
        _ => (name, ""),
    }
}

/// Returns every word that stays, in lower case.
#[cfg(test)]
pub(super) fn all_kept() -> impl Iterator<Item = String> {
    set(KEYWORDS).chain(set(MANIFESTS)).chain(set(ENDINGS)).map(str::to_lowercase)
}
