//! Which rule a path gets, and which settings the identities cover.

use super::*;
use crate::data::{ContentId, TextHash};

/// Shows the rule of a path as `name/chunker/language`.
fn check(rules: &Rules, path: &str) -> String {
    let rule = rules.rule(rules.for_path(&path.into()));
    format!("{}/{}/{}", rule.name(), rule.chunker(), rule.language())
}

#[test]
fn every_path_has_a_rule() {
    let rules = Rules::built_in();
    for (path, expected) in [
        ("src/lib.rs", "rust/syntax/rust"),
        ("lib.rs", "rust/syntax/rust"),
        ("a/b/c.H", "cpp/syntax/cpp"),
        ("a/vm.c", "c/syntax/c"),
        ("tools/run.py", "python/syntax/python"),
        ("README.MD", "markdown/heading/markdown"),
        ("assets/pbr.wgsl", "shader/line/wgsl"),
        ("Source/Engine.Build.cs", "csharp/line/csharp"),
        ("Cargo.lock", "toml/line/toml"),
        ("yarn.lock", "lock/line/"),
        ("CMakeLists.txt", "cmake/line/cmake"),
        ("notes.txt", "text/paragraph/"),
        ("LICENSE", "text/paragraph/"),
        (".gitignore", "text/paragraph/"),
        ("a/.hidden/x", "text/paragraph/"),
    ] {
        assert_eq!(check(&rules, path), expected, "{path}");
    }
    let strange = DocumentPath::new(b"a\n\xff/\\[b".as_slice());
    assert_eq!(rules.rule(rules.for_path(&strange)).name(), "text");
}

#[test]
fn rules_of_ones_own_come_first_and_may_lean_on_others() {
    let rules = Rules::parse(
        "[[rule]]\nname = 'old docs'\nmatch = ['docs/0.16/**']\nlike = 'markdown'\nlabels = { version = '0.16', a = 'b' }\n\
         [[rule]]\nname = 'vendor'\nmatch = ['vendor/**']\nexclude = true\n",
    )
    .expect("the rules are sound");
    assert_eq!(check(&rules, "docs/0.16/guide.md"), "old docs/heading/markdown");
    assert_eq!(check(&rules, "docs/0.17/guide.md"), "markdown/heading/markdown");
    assert!(rules.rule(rules.for_path(&"vendor/x/y.rs".into())).excluded());
    let labels = rules.rule(rules.for_path(&"docs/0.16/guide.md".into())).labels(&"docs/0.16/guide.md".into());
    assert_eq!(labels, [("a".to_owned(), "b".to_owned()), ("version".to_owned(), "0.16".to_owned())]);
}

#[test]
fn a_wrong_rule_is_refused_by_name() {
    for (toml, expected) in [
        ("[[rule]]\nname = 'x'\nmatch = ['*']\nchunker = 'magic'", "rule `x`: chunker cannot be `magic`"),
        (
            "[[rule]]\nname = 'x'\nmatch = ['*']\nchunker = 'syntax'\nlanguage = 'go'",
            "rule `x`: language cannot be `go`",
        ),
        ("[[rule]]\nname = 'x'\nmatch = ['*']\nlike = 'y'", "rule `x`: like cannot be `y`"),
        ("[[rule]]\nname = 'x'\nmatch = ['a[']", "rule `x`: `a[` is not a glob"),
        ("[[rule]]\nname = 'x'\nmatch = []", "rule `x`: match cannot be `[]`"),
        ("[[rule]]\nname = 'x'\nmatch = ['*']\nwhole_up_to = 9", "rule `x`: whole_up_to cannot be `9`"),
        ("[[rule]]\nname = 'x'\nmatch = ['*']\ncharset = 'gbk2'", "rule `x`: charset cannot be `gbk2`"),
        ("[[rule]]\nname = 'x'\nmatch = ['*']\ncutter = 'line'", "cannot read the rules"),
    ] {
        let error = Rules::parse(toml).err().expect("the rule is wrong").to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn identities_cover_what_can_change_the_result_and_no_more() {
    let rules = Rules::parse(
        "[[rule]]\nname = 'labelled'\nmatch = ['a/*.rs']\nlike = 'rust'\nlabels = { v = '1' }\n\
         [[rule]]\nname = 'short'\nmatch = ['b/*.rs']\nlike = 'rust'\nwhole_up_to = 800\n\
         [[rule]]\nname = 'told'\nmatch = ['d/*.rs']\nlike = 'rust'\ncharset = 'GB2312'\n\
         [[rule]]\nname = 'small'\nmatch = ['c/*.rs']\nlike = 'rust'\nmax_bytes = 10\n",
    )
    .expect("the rules are sound");
    let rule = |path: &str| rules.rule(rules.for_path(&path.into()));
    let content = ContentId::default();
    let text = TextHash::of("x");
    let [plain, labelled, short, small, told] = ["x.rs", "a/x.rs", "b/x.rs", "c/x.rs", "d/x.rs"].map(rule);
    assert_ne!(plain.document_id(content, None), told.document_id(content, None));
    assert_eq!(plain.chunking_id(text), told.chunking_id(text));
    assert_eq!(plain.document_id(content, None), labelled.document_id(content, None));
    assert_eq!(plain.chunking_id(text), labelled.chunking_id(text));
    assert_eq!(plain.document_id(content, None), short.document_id(content, None));
    assert_ne!(plain.chunking_id(text), short.chunking_id(text));
    assert_ne!(plain.document_id(content, None), small.document_id(content, None));
    assert_eq!(
        plain.document_id(content, None),
        rule("x.md").document_id(content, None),
        "rules that clean alike share documents"
    );
    assert_ne!(plain.chunking_id(text), rule("x.cpp").chunking_id(text));
    assert_ne!(rules.fingerprint(), Rules::built_in().fingerprint());
    assert_eq!(Rules::built_in().fingerprint(), Rules::parse("# nothing").expect("the rules are sound").fingerprint());
}
