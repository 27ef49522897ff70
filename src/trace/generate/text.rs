//! The text of a generated file: items of code or sections of prose, each of which an edit can change alone.
//!
//! In: a [`File`]. Out: its bytes. **Invariant:** an item's text follows only from the file's number, the item's number and its
//! count of edits, so an edit of one item leaves the bytes of all other items unchanged.

use super::Numbers;
use std::fmt::Write;

/// The kind of file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    Header,
    Source,
    Build,
    Script,
    Rust,
    Shader,
    Settings,
    English,
    Chinese,
}

/// All inputs that determine a file's bytes.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) kind: Kind,
    pub(super) seed: u64,
    pub(super) number: u64,
    pub(super) items: u32,
    /// How often each item was edited, where it was.
    pub(super) edits: Vec<(u32, u32)>,
    /// Whether it is indented by tabs.
    pub(super) tabs: bool,
    /// Whether lines end as on Windows.
    pub(super) carriage: bool,
}

/// Words of engines, which the built-in model knows.
const WORDS: [&str; 96] = [
    "world",
    "camera",
    "render",
    "mesh",
    "shader",
    "light",
    "shadow",
    "texture",
    "material",
    "buffer",
    "frame",
    "scene",
    "entity",
    "component",
    "system",
    "query",
    "event",
    "input",
    "window",
    "audio",
    "sound",
    "physics",
    "collision",
    "body",
    "joint",
    "animation",
    "bone",
    "skeleton",
    "curve",
    "timeline",
    "asset",
    "loader",
    "stream",
    "package",
    "level",
    "landscape",
    "terrain",
    "foliage",
    "water",
    "particle",
    "emitter",
    "effect",
    "network",
    "replication",
    "server",
    "client",
    "session",
    "player",
    "controller",
    "pawn",
    "actor",
    "widget",
    "layout",
    "font",
    "text",
    "style",
    "button",
    "editor",
    "viewport",
    "gizmo",
    "tool",
    "command",
    "undo",
    "graph",
    "node",
    "pin",
    "compiler",
    "script",
    "module",
    "plugin",
    "config",
    "profile",
    "memory",
    "thread",
    "task",
    "queue",
    "lock",
    "atomic",
    "vector",
    "matrix",
    "rotation",
    "transform",
    "bounds",
    "ray",
    "trace",
    "navigation",
    "path",
    "agent",
    "behavior",
    "blackboard",
    "gameplay",
    "ability",
    "attribute",
    "tag",
    "save",
    "cook",
];

const CHINESE: [&str; 24] = [
    "渲染", "相机", "场景", "网格", "材质", "光照", "阴影", "纹理", "缓冲", "实体", "组件", "系统", "查询", "事件",
    "输入", "窗口", "音频", "物理", "碰撞", "动画", "骨骼", "资源", "加载", "关卡",
];

fn word(numbers: &mut Numbers) -> &'static str {
    // The smaller of two draws: some words are frequent, as in any text.
    WORDS[numbers.below(WORDS.len()).min(numbers.below(WORDS.len()))]
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Returns the name of a type that belongs to a file.
pub(super) fn type_name(seed: u64, number: u64) -> String {
    let mut numbers = Numbers::of(seed, number);
    format!("{}{}{number}", capital(word(&mut numbers)), capital(word(&mut numbers)))
}

impl File {
    /// Edits an item once more.
    pub(super) fn edit(&mut self, item: u32) {
        match self.edits.iter_mut().find(|(known, _)| *known == item) {
            Some((_, times)) => *times += 1,
            None => self.edits.push((item, 1)),
        }
    }

    /// Returns the file's bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut text = String::new();
        let name = type_name(self.seed, self.number);
        self.open(&name, &mut text);
        for item in 0..self.items {
            let times = self.edits.iter().find(|(edited, _)| *edited == item).map_or(0, |(_, times)| *times);
            let stream = (u64::from(item) << 32) ^ self.number.rotate_left(17);
            self.item(&name, item, times, &mut Numbers::of(self.seed, stream), &mut text);
        }
        if self.kind == Kind::Header {
            text.push_str("};\n");
        }
        if self.tabs {
            text = text.replace("    ", "\t");
        }
        if self.carriage {
            text = text.replace('\n', "\r\n");
        }
        text.into_bytes()
    }

    fn open(&self, name: &str, text: &mut String) {
        // Writing to a string never fails.
        let _ = match self.kind {
            Kind::Header => write!(
                text,
                "// A generated header of {name}.\n\n#pragma once\n\n#include \"CoreMinimal.h\"\n#include \"{name}.generated.h\"\n\n/** Keeps the {name} of a level. */\nUCLASS(BlueprintType, Category = \"Generated\")\nclass GENERATED_API U{name} : public UObject\n{{\n    GENERATED_BODY()\n\npublic:\n"
            ),
            Kind::Source => write!(text, "#include \"{name}.h\"\n#include \"Engine/World.h\"\n\n"),
            Kind::Build => write!(
                text,
                "using UnrealBuildTool;\n\npublic class {name} : ModuleRules\n{{\n    public {name}(ReadOnlyTargetRules Target) : base(Target)\n    {{\n        PublicDependencyModuleNames.AddRange(new string[] {{ \"Core\", \"Engine\" }});\n    }}\n}}\n"
            ),
            Kind::Script => write!(text, "\"\"\"Tools for {name}.\"\"\"\n\nimport sys\n\n\n"),
            Kind::Rust => write!(text, "//! Keeps {name}.\n\nuse crate::world::World;\n\n"),
            Kind::Shader => write!(text, "// Shades {name}.\n\n"),
            Kind::Settings => writeln!(text, "; Settings of {name}"),
            Kind::English => write!(text, "# {name}\n\n"),
            Kind::Chinese => write!(text, "# {name} 指南\n\n"),
        };
    }

    fn item(&self, name: &str, item: u32, times: u32, numbers: &mut Numbers, text: &mut String) {
        let (one, two) = (word(numbers), word(numbers));
        let (cap_one, cap_two) = (capital(one), capital(two));
        let edited = if times == 0 { String::new() } else { format!(" Edited {times} times.") };
        let body = |numbers: &mut Numbers, text: &mut String, statement: &dyn Fn(&str, &str, u64) -> String| {
            for line in 0..4 + numbers.below(18) {
                let value = numbers.next() % 1000 + if line == 0 { u64::from(times) } else { 0 };
                text.push_str(&statement(word(numbers), word(numbers), value));
            }
        };
        let _ = match self.kind {
            Kind::Header => {
                let (three, four) = (word(numbers), word(numbers));
                let _ = write!(
                    text,
                    "    /**\n     * Returns the {one} that the {two} of a {three} uses for its {four}.{edited}\n"
                );
                for _ in 0..2 + numbers.below(5) {
                    let (a, b, c) = (word(numbers), word(numbers), word(numbers));
                    let _ = writeln!(
                        text,
                        "     * While a {a} waits for the {b}, its {c} stays as it was in the frame before."
                    );
                }
                write!(
                    text,
                    "     */\n    UFUNCTION(BlueprintCallable, Category = \"{cap_one}\")\n    bool Get{cap_one}{cap_two}{item}(const FVector& {three}, int32 {four}Count) const;\n\n    UPROPERTY(EditAnywhere)\n    float {cap_two}{cap_one}{item} = {}.0f;\n\n",
                    numbers.next() % 100 + u64::from(times)
                )
            }
            Kind::Source => {
                let _ = write!(
                    text,
                    "// Finds the {one} of the {two}.{edited}\nbool U{name}::Get{cap_one}{cap_two}{item}(const FVector& {one}, int32 {two}Count) const\n{{\n"
                );
                body(numbers, text, &|a, b, value| {
                    format!("    if ({a}Count > {value})\n    {{\n        {b}->Update({a}Count, {value});\n    }}\n")
                });
                write!(text, "    return {two}Count > {};\n}}\n\n", times)
            }
            Kind::Script => {
                let _ = write!(
                    text,
                    "def {one}_{two}_{item}({one}, {two}=None):\n    \"\"\"Collects the {one} of a {two}.{edited}\"\"\"\n"
                );
                body(numbers, text, &|a, b, value| format!("    {a} = {b}({one}, {value})\n"));
                write!(text, "    return {one}\n\n\n")
            }
            Kind::Rust => {
                let _ = write!(
                    text,
                    "/// Returns the {one} of a {two}.{edited}\npub fn {one}_{two}_{item}(world: &mut World, {two}: u32) -> u32 {{\n"
                );
                body(numbers, text, &|a, b, value| format!("    let {a} = world.{b}({two} + {value});\n"));
                write!(text, "    {two} + {times}\n}}\n\n")
            }
            Kind::Shader => {
                let _ = write!(
                    text,
                    "// Blends the {one} with the {two}.{edited}\nfloat4 {cap_one}{cap_two}{item}(float4 {one}, float4 {two})\n{{\n"
                );
                body(numbers, text, &|a, b, value| {
                    format!("    float {a}{value} = dot({one}.xyz, {two}.xyz) * {value}.0; // {b}\n")
                });
                write!(text, "    return {one} * {two} + {times}.0;\n}}\n\n")
            }
            Kind::Settings => write!(
                text,
                "\n[/Script/{cap_one}.{cap_two}{item}]\n{one}={}\n{two}=\"{}\"\n",
                numbers.next() % 1000 + u64::from(times),
                word(numbers)
            ),
            Kind::Build => Ok(()),
            Kind::English => {
                let _ = write!(text, "## The {one} of the {two} {item}\n\n");
                for _ in 0..3 + numbers.below(6) {
                    let _ = write!(
                        text,
                        "When a {} reaches the {}, the {} updates its {} before the next {}. ",
                        word(numbers),
                        word(numbers),
                        word(numbers),
                        word(numbers),
                        word(numbers)
                    );
                }
                write!(text, "{edited}\n\n")
            }
            Kind::Chinese => {
                let mut pick = || CHINESE[numbers.below(CHINESE.len())];
                let _ = write!(text, "## {}与{}的{item}\n\n", pick(), pick());
                for _ in 0..6 {
                    let (a, b, c) = (pick(), pick(), pick());
                    let _ = write!(text, "当{a}到达{b}时，{c}会在下一帧之前更新它的{a}设置。");
                }
                write!(text, "{}\n\n", if times == 0 { String::new() } else { format!("修改了{times}次。") })
            }
        };
    }
}
