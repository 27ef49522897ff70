//! The analyser's promises: the tokens of a text, and laws for every text.

use super::*;
use proptest::prelude::*;

/// Writes tokens so that a case reads in a line: `|` moves on to the next position, `+` stays on it.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    let mut before = None;
    for token in analyze(text) {
        match before {
            None => {}
            Some(position) if position == token.position => shown.push('+'),
            Some(_) => shown.push('|'),
        }
        before = Some(token.position);
        shown.push_str(&token.text);
    }
    shown
}

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(shown(text), *expected, "analysed {text:?}");
    }
}

#[test]
fn identifiers_are_kept_whole_and_taken_apart() {
    check(&[
        ("spawn_camera", "spawn_camera+spawn|camera"),
        ("QueryFilter", "queryfilter+query|filter"),
        ("queryFilter", "queryfilter+query|filter"),
        ("HTTPServer", "httpserver+http|server"),
        ("MAX_FRAME_COUNT", "max_frame_count+max|frame|count"),
        ("Vec3", "vec3+vec|3"),
        ("u32", "u32+u|32"),
        ("utf8ToUtf16", "utf8toutf16+utf|8|to|utf|16"),
        ("__init__", "__init__+init"),
        ("Camera", "camera"),
        ("GPU", "gpu"),
        ("42", "42"),
        ("___", ""),
        ("entityIDs", "entityids+entity|id"),
        ("URLs", "url"),
        ("bevy_ecs::World", "bevy_ecs+bevy|ec|world"),
    ]);
}

#[test]
fn plurals_meet_their_singular() {
    check(&[
        ("cameras", "camera"),
        ("queries", "query"),
        ("trees nodes", "tree|node"),
        ("SpawnCameras", "spawncameras+spawn|camera"),
        ("class status", "class|status"),
        ("as ties pies", "as|tie|pie"),
    ]);
}

#[test]
fn other_scripts() {
    check(&[
        ("Größe", "größe"),
        ("ГлавнаяКамера", "главнаякамера+главная|камера"),
        ("x\u{301}y ok", "x\u{301}y|ok"),
        ("相机系统", "相机|机系|系统"),
        ("猫", "猫"),
        ("相机Camera类", "相机|camera|类"),
        ("カメラ・ライト", "カメ|メラ|ライ|イト"),
        ("카메라 설정", "카메|메라|설정"),
        ("相机。系统", "相机|系统"),
    ]);
}

#[test]
fn spellings_that_look_alike_are_one_word() {
    for (decomposed, typed) in [
        ("Gro\u{308}\u{df}enwa\u{308}hler", "Größenwähler"),
        ("\u{110b}\u{116b}\u{1100}\u{1161}\u{1105}\u{1175}", "왜가리"),
        ("Vie\u{323}\u{302}t", "Việt"),
        ("ＡＰＩ", "API"),
        ("ｶﾒﾗ", "カメラ"),
        ("e\u{fb03}cient", "efficient"),
        ("co\u{ad}op", "coop"),
    ] {
        assert_eq!(shown(decomposed), shown(typed));
    }
    check(&[("渲染器ＡＰＩ接口", "渲染|染器|api|接口"), ("हिन्दी", "हिन्दी"), ("x² ½", "x²+x|²|½")]);
}

#[test]
fn words_with_signs_are_kept_whole_as_well() {
    check(&[
        ("C++ C++17 c", "c+++c|c+++c|17|c"),
        ("C# F#, r#\"", "c#+c|f#+f|r"),
        ("用C#写", "用|c#+c|写"),
        ("operator<<(a) operator [] operator bool", "operator<<+operator|a|operator[]+operator|operator|bool"),
        ("operator==", "operator==+operator"),
        ("--no-std=x --Dir", "--no-std+no|std|x|--dir+dir"),
        ("cc -Wall -O2 (-v) a - b x-y", "cc|-wall+wall|-o2+o2+o|2|-v+v|a|b|x|y"),
        ("#include <a.h> #12 ## x#y r#type", "#include+include|a|h|#12+12|x|y|r|type"),
        ("@dataclass me@host.org", "@dataclass+dataclass|me|host|org"),
        ("$crate::x $_GET $1 $$ ${y}", "$crate+crate|x|$_get+_get+get|$1+1|y"),
        (".NET ASP.NET .net a.net .network", ".net+net|asp|.net+net|.net+net|a|net|network"),
        ("a->b x.y std::vector<int>", "a|b|x|y|std|vector|int"),
        ("i++ <!--x--> --- y", "i+++i|x|y"),
    ]);
}

#[test]
fn data_is_not_taken_apart() {
    check(&[
        ("3f786850e387550fdab836ed7e6dc881de23001b", "3f786850e387550fdab836ed7e6dc881de23001b"),
        ("a1b2c3d4e5f6a7b8c9d0", "a1b2c3d4e5f6a7b8c9d0"),
    ]);
}

#[test]
fn a_long_token_is_cut_and_still_found_by_itself_only() {
    let long = "Ab3".repeat(100);
    let shown_long = shown(&long);
    assert_eq!(shown_long.len(), SHORTENED_HEAD_BYTES + 1 + 16);
    assert_eq!(shown_long, shown(&long.to_lowercase()));
    assert_ne!(shown_long, shown(&format!("{long}x")));
    assert_ne!(shown_long, shown(&long[..long.len() - 1]));
}

#[test]
fn one_line_of_a_mebibyte_stays_small() {
    let marks = format!("e{}", "\u{301}".repeat(1 << 19));
    for line in ["A3bZ".repeat(1 << 18), "é".repeat(1 << 19), "_".repeat(1 << 20), "x".repeat(1 << 20), marks] {
        assert!(analyze(&line).iter().map(|token| token.text.len()).sum::<usize>() <= MAX_TOKEN_BYTES + 1);
    }
    // Characters that set no spaces make one token each, and no more.
    assert_eq!(analyze(&"相".repeat(1 << 18)).len(), (1 << 18) - 1);
}

/// The analysis of this text in one number. If this fails, `ANALYZER_VERSION` must change with it: it decides whether stores are
/// indexed again.
#[test]
fn the_version_names_what_the_analysis_does() {
    let text = "pub fn spawn_cameras(&mut self, HTTPServer: Vec3, entityIDs: u32) -> Queries; // don't panic, trees 相机系统 \
        ключ café 3f786850e387550fdab836ed7e6dc881de23001b _unused __init__ x86_64 ABCs İstanbul ΣΑΣ ① ² ﬁ \
        C++ C# operator<<= --flag -Wall #include @x $y .NET Gro\u{308}ße ＡＰＩ ｶﾞ \u{110b}\u{116a} हिन्दी";
    let mut hasher = Hasher::new("test").part(ANALYZER_VERSION.as_bytes());
    for token in analyze(text) {
        hasher = hasher.part(token.text.as_bytes()).part(&token.position.to_le_bytes());
    }
    let [low, _] = hasher.finish();
    assert_eq!(format!("{low:016x}"), "dc1de853047f9ea0");
}

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z0-9_]{1,12}",
        "[ .:;(){}<>'\"~-]{1,3}",
        "\\PC{1,4}",
        "[相机系统カメラ카메라。]{1,6}",
        "[a-zA-Z0-9İKΣßéЖ\u{301}]{60,300}",
        "([a-z]{1,3}[A-Z]){1,40}",
        "[ #@$.+-]{1,3}",
        "(operator|C|\\.NET|x)( ?<<|\\+\\+|#|\\[\\])",
        "[aouｶ\u{110b}\u{1100}Ａ\u{fb01}][\u{301}\u{308}\u{116a}ﾞ\u{ad}\u{fe0f}]{0,2}",
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(crate::index::cases(512))]

    #[test]
    fn every_token_is_bounded_and_placed(text in any_text()) {
        let tokens = analyze(&text);
        let mut next = 0;
        for token in &tokens {
            prop_assert!(!token.text.is_empty() && token.text.len() <= MAX_TOKEN_BYTES + 3);
            prop_assert!(text.get(token.offsets.clone()).is_some_and(|source| !source.is_empty()));
            prop_assert!(token.position == next || token.position + 1 == next, "{token:?} behind {next}");
            next = token.position + 1;
        }
        prop_assert_eq!(tokens.first().map_or(0, |first| first.position), 0);
        prop_assert_eq!(&tokens, &analyze(&text));
    }

    /// A word that is copied out of a text finds the text.
    #[test]
    fn what_stands_in_the_text_finds_it(text in any_text()) {
        for token in analyze(&text) {
            let asked = analyze(&text[token.offsets.clone()]);
            prop_assert!(asked.iter().any(|found| found.text == token.text), "{token:?} not in {asked:?}");
        }
    }
}
