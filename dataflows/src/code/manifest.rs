//! The module names in manifests.
//!
//! In: a path and its text. Out: the module of the manifest's folder and everything below it.
//!
//! **Invariant:** the file name alone decides whether a file is a manifest; name and text decide the module. An unreadable
//! manifest names no module. A change that keeps the name (a version, a dependency) changes no card below it. Changes of the
//! output here need a new `rules::version::MANIFEST_VERSION`.

use crate::data::DocumentPath;
use serde::Deserialize;

/// The longest module name, in bytes; a manifest with a longer one is ignored.
const LONGEST_NAME: usize = 200;

/// The largest manifest that is read, in bytes.
const LARGEST_MANIFEST: usize = 1 << 20;

/// The kinds of manifest, each recognised by its file name.
#[derive(Clone, Copy)]
enum Kind {
    Cargo,
    PyProject,
    SetupCfg,
    Package,
    GoMod,
    /// The file name itself is the module name: the part before the ending.
    Named(&'static str),
}

fn kind(path: &DocumentPath) -> Option<Kind> {
    /// Unreal names a module by `NAME.Build.cs` and a plugin by `NAME.uplugin`.
    const ENDINGS: [&str; 2] = [".Build.cs", ".uplugin"];
    let name = path.file_name();
    match name {
        b"Cargo.toml" => Some(Kind::Cargo),
        b"pyproject.toml" => Some(Kind::PyProject),
        b"setup.cfg" => Some(Kind::SetupCfg),
        b"package.json" => Some(Kind::Package),
        b"go.mod" => Some(Kind::GoMod),
        _ => ENDINGS
            .into_iter()
            .find(|ending| name.len() > ending.len() && name.ends_with(ending.as_bytes()))
            .map(Kind::Named),
    }
}

/// Tells whether the file at `path` may name a module.
#[must_use]
pub fn is_manifest(path: &DocumentPath) -> bool {
    kind(path).is_some()
}

/// Returns the module name of the manifest at `path`, which applies to its folder and below.
///
/// ```
/// use dataflows::code::module_name;
/// let text = "[package]\nname = \"bevy_ecs\"\n";
/// assert_eq!(module_name(&"crates/bevy_ecs/Cargo.toml".into(), text).as_deref(), Some("bevy_ecs"));
/// ```
#[must_use]
pub fn module_name(path: &DocumentPath, text: &str) -> Option<String> {
    if text.len() > LARGEST_MANIFEST {
        return None;
    }
    let name = match kind(path)? {
        Kind::Cargo => toml::from_str::<CargoManifest>(text).ok()?.package?.name,
        Kind::PyProject => {
            let manifest: PyProject = toml::from_str(text).ok()?;
            let poetry = manifest.tool.and_then(|tool| tool.poetry).and_then(|poetry| poetry.name);
            manifest.project.and_then(|project| project.name).or(poetry)
        }
        Kind::SetupCfg => ini_name(text),
        Kind::Package => serde_json::from_str::<Named>(text).ok()?.name,
        Kind::GoMod => text.lines().find_map(|line| line.trim().strip_prefix("module ")).map(str::to_owned),
        Kind::Named(ending) => {
            let name = path.file_name();
            Some(String::from_utf8_lossy(&name[..name.len() - ending.len()]).into_owned())
        }
    }?;
    let name = name.trim();
    let usable = !name.is_empty() && name.len() <= LONGEST_NAME && !name.chars().any(char::is_control);
    usable.then(|| name.to_owned())
}

#[derive(Deserialize)]
struct Named {
    name: Option<String>,
}

#[derive(Deserialize)]
struct CargoManifest {
    package: Option<Named>,
}

#[derive(Deserialize)]
struct PyProject {
    project: Option<Named>,
    tool: Option<PyTools>,
}

#[derive(Deserialize)]
struct PyTools {
    poetry: Option<Named>,
}

/// Returns `name` of the section `[metadata]`.
fn ini_name(text: &str) -> Option<String> {
    let section = text.lines().map(str::trim).skip_while(|line| *line != "[metadata]").skip(1);
    let mut section = section.take_while(|line| !line.starts_with('['));
    section.find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "name").then(|| value.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_name_their_module() {
        for (path, text, expected) in [
            ("crates/a/Cargo.toml", "[package]\nname = \"a\"\nversion.workspace = true\n", Some("a")),
            ("Cargo.toml", "[workspace]\nmembers = []\n", None),
            ("Cargo.toml", "[package\n", None),
            ("Cargo.toml", "[package]\nname = 3\n", None),
            ("pyproject.toml", "[project]\nname = \"tool\"\n", Some("tool")),
            ("pyproject.toml", "[tool.poetry]\nname = \"old\"\n", Some("old")),
            ("setup.cfg", "[options]\nname = x\n[metadata]\nname = pkg\n", Some("pkg")),
            ("package.json", "{\"name\": \"@scope/web\", \"version\": \"1\"}", Some("@scope/web")),
            ("package.json", "[]", None),
            ("go.mod", "// x\nmodule example.com/m\n\ngo 1.22\n", Some("example.com/m")),
            ("Source/Engine/Engine.Build.cs", "", Some("Engine")),
            ("Plugins/X/Niagara.uplugin", "{}", Some("Niagara")),
            ("a/b/.uplugin", "{}", None),
            ("src/lib.rs", "", None),
        ] {
            assert_eq!(module_name(&path.into(), text).as_deref(), expected, "{path}: {text}");
            assert!(expected.is_none() || is_manifest(&path.into()));
        }
    }

    #[test]
    fn a_hostile_manifest_names_nothing() {
        let deep = format!("{{\"name\":{}", "[".repeat(100_000));
        assert_eq!(module_name(&"package.json".into(), &deep), None);
        let deep = format!("a = {}", "[".repeat(100_000));
        assert_eq!(module_name(&"Cargo.toml".into(), &deep), None);
        let long = format!("[package]\nname = \"{}\"", "x".repeat(1_000));
        assert_eq!(module_name(&"Cargo.toml".into(), &long), None);
    }
}
