//! A tree like that of a large engine: modules of headers and sources, settings, scripts, shaders, documents in two
//! languages.
//!
//! In: the number of files, and a seed. Out: the path and the recipe of each. **Invariant:** file `n` does not depend on the size
//! of the tree, so a growing tree keeps its files.

use super::Numbers;
use super::text::{File, Kind, type_name};
use dataflows::data::DocumentPath;

/// Files of one module; its manifest is the first.
const MODULE: u64 = 64;
const GROUPS: [&str; 5] = ["Runtime", "Editor", "Developer", "Programs", "Plugins"];

/// Returns the number of the module that a file belongs to.
pub(super) const fn module_of(number: u64) -> u64 {
    number / MODULE
}

/// Returns the folder of a module that was moved so many times.
pub(super) fn folder(seed: u64, module: u64, moved: u32) -> String {
    let group = GROUPS[Numbers::of(seed, module ^ 0xf01d).below(GROUPS.len())];
    let name = type_name(seed, module * MODULE);
    if moved == 0 { format!("Source/{group}/{name}") } else { format!("Source/{group}/{name}V{moved}") }
}

/// Returns the path of file `number`, in a module that was moved so many times, and its recipe.
pub(super) fn file(seed: u64, number: u64, moved: u32) -> (DocumentPath, File) {
    let folder = folder(seed, module_of(number), moved);
    let name = type_name(seed, number);
    let mut numbers = Numbers::of(seed, number ^ 0x00f1_1e00);
    let (kind, path) = match number % MODULE {
        0 => (Kind::Build, format!("{folder}/{name}.Build.cs")),
        slot @ 1..=20 => (Kind::Header, format!("{folder}/{}/{name}.h", if slot < 15 { "Public" } else { "Classes" })),
        21..=48 => (Kind::Source, format!("{folder}/Private/{name}.cpp")),
        49..=51 => (Kind::Shader, format!("{folder}/Shaders/{name}.usf")),
        52..=53 => (Kind::Settings, format!("{folder}/Config/{name}.ini")),
        54..=55 => (Kind::Script, format!("{folder}/Scripts/{name}.py")),
        56..=57 => (Kind::Rust, format!("{folder}/Native/{name}.rs")),
        58..=61 => (Kind::English, format!("{folder}/Docs/en/{name}.md")),
        _ => (Kind::Chinese, format!("{folder}/Docs/zh/{name}.md")),
    };
    let items = if kind == Kind::Build { 0 } else { 3 + numbers.below(6) + numbers.below(9) * numbers.below(2) };
    let file = File { kind, seed, number, items: items as u32, edits: Vec::new(), tabs: false, carriage: false };
    (DocumentPath::from(path.as_str()), file)
}
