//! What is left out, and above all what stays.

use super::*;
use crate::chunk::tests::files::{Words, each_of_corpus};
use crate::chunk::{TextChunk, chunk};
use crate::rules::Rules;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(seed: u64, length: usize) -> String {
    let words = &mut Words(seed);
    (0..length).map(|_| char::from(DIGITS[words.below(64) as usize])).collect()
}

fn hexadecimal(seed: u64, length: usize) -> String {
    let words = &mut Words(seed);
    (0..length).map(|_| char::from(b"0123456789abcdef"[words.below(16) as usize])).collect()
}

fn wrapped_at(width: usize, digits: &str, before: &str, behind: &str) -> String {
    let lines =
        digits.as_bytes().chunks(width).map(|line| format!("{before}{}{behind}\n", String::from_utf8_lossy(line)));
    lines.collect()
}

fn check(text: &str, expected: &str) {
    assert_eq!(Condensed::of(text).text(), expected);
}

#[test]
fn unbroken_digits_are_left_out_and_what_names_them_stays() {
    let picture = base64(1, 20_000);
    check(
        &format!("![x](data:image/png;base64,{picture}) and the heron\n"),
        "![x](data:image/png;base64,[base64, 20 KB left out]) and the heron\n",
    );
    check(&format!("\"key\": \"{}\",", hexadecimal(2, 600)), "\"key\": \"[hexadecimal, 600 bytes left out]\",");
    // As older notebooks and PHP write them.
    let escaped: Vec<String> =
        picture.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line).replace('/', "\\/")).collect();
    let escaped = escaped.join("\\n");
    check(
        &format!("\"image/png\": \"{escaped}\""),
        &format!("\"image/png\": \"[base64, {} KB left out]\"", escaped.len() / 1000),
    );
    let bytes: String =
        hexadecimal(3, 800).as_bytes().chunks(2).map(|pair| format!("\\x{}", String::from_utf8_lossy(pair))).collect();
    check(&format!("const char* font = \"{bytes}\";"), "const char* font = \"[hexadecimal, 1 KB left out]\";");
    // Zeros, as meshes have them.
    check(&"AAAAgD8AAIA/AAAAAAAAAAAAgL8AAAAA".repeat(100), "[base64, 3 KB left out]");
    let mappings = "AAAA,SAASA,IAAI,CAACC,KAAK,EAAE;AACrB,OAAOC,".repeat(40);
    check(
        &format!("\"mappings\":\"{mappings}\""),
        &format!("\"mappings\":\"[base64, {} KB left out]\"", mappings.len() / 1000),
    );
}

#[test]
fn lines_of_digits_are_left_out() {
    let digits = base64(4, 1_700);
    check(
        &format!("-----BEGIN CERTIFICATE-----\n{}-----END CERTIFICATE-----\n", wrapped_at(64, &digits, "", "")),
        "-----BEGIN CERTIFICATE-----\n[base64, 1 KB left out]\n-----END CERTIFICATE-----\n",
    );
    check(
        &format!("let picture = [\n{}];\n", wrapped_at(76, &digits, "    \"", "\\n\",")),
        "let picture = [\n    \"[base64, 1 KB left out]\\n\",\n];\n",
    );
}

#[test]
fn long_tables_of_numbers_keep_their_head() {
    let words = &mut Words(5);
    let mut number = || format!("{}.{:06}", words.below(9), words.below(999_999));
    let mesh: String = (0..2_000).map(|_| format!("v {} -{} {}\n", number(), number(), number())).collect();
    let text = format!("# a heron\no Heron\n{mesh}usemtl feather\n");
    let condensed = Condensed::of(&text);
    let shown = condensed.text();
    assert!(
        shown.starts_with("# a heron\no Heron\nv ") && shown.ends_with(" KB left out]\nusemtl feather\n"),
        "{shown}"
    );
    assert!(shown.contains("[numbers, ") && (1_000..1_300).contains(&shown.len()), "{}", shown.len());
    let path: String = (0..900).map(|_| format!("C{} {},{} ", number(), number(), number())).collect();
    let shown = Condensed::of(&format!("<path class=\"wing\" d=\"{path}\"/>")).text().to_owned();
    assert!(shown.len() < 1_300 && shown.starts_with("<path class=\"wing\" d=\"C"), "{shown}");
    let bytes: String = (0..3_000).map(|n| format!("0x{:02x}, ", n % 251)).collect();
    assert!(Condensed::of(&format!("static const uint8_t font[] = {{ {bytes} }};")).text().len() < 1_300);
    let dump: String = (0..300)
        .map(|n| format!("{:08x}: 4865 6c6c 6f20 776f 726c 640a 0000 0000  Hello world.....\n", n * 16))
        .collect();
    let shown = Condensed::of(&dump).text().to_owned();
    assert!(shown.contains("[hexadecimal, ") && shown.len() < 1_300, "{shown}");
    let minified: String = (0..4_000).map(|n| format!("{},", n * 7_919 % 10_007)).collect();
    assert!(Condensed::of(&format!("var table=[{minified}];")).text().len() < 1_300);
}

#[test]
fn what_people_search_for_stays() {
    let hash = hexadecimal(6, 64);
    let sums: String = (0..400).map(|n| format!("{}  release/heron-{n}.tar.gz\n", hexadecimal(n, 64))).collect();
    let bare: String = (0..400).map(|n| hexadecimal(n, 64) + "\n").collect();
    let ids: String = (0..400)
        .map(|n| {
            let hash = hexadecimal(n, 32);
            format!("{}-{}-{}-{}-{}\n", &hash[..8], &hash[8..12], &hash[12..16], &hash[16..20], &hash[20..])
        })
        .collect();
    let integrity: String =
        (0..400).map(|n| format!("      \"integrity\": \"sha512-{}==\",\n", base64(n, 86))).collect();
    let numbers: String = (0..100).map(|n| format!("{n}.5, {n}.25, {n}\n")).collect();
    let listing: String = (0..900).map(|n| format!("  {n:x}: 48 89 c7   mov rdi, rax\n")).collect();
    let countries = "AF,AX,AL,DZ,AS,AD,AO,AI,AQ,AG,AR,AM,AW,AU,AT,AZ,BS,BH,BD,BB,BY,".repeat(6);
    let names: String = (0..40).map(|n| format!("renderPassDescriptor{n}_colorAttachment/")).collect();
    let modules = "react,react-dom,lodash-es,webpack-cli,typescript,eslint-plugin-import,".repeat(6);
    let sheet: String = (0..900).map(|n| format!("{n},Heron,{},Lake,{}\n", n * 3, n * 7)).collect();
    let chinese = "渲染器在每一帧开始时提取实体。".repeat(600);
    let ruler = format!("{}\n", "=".repeat(300)) + &format!("+{}+\n", "-".repeat(60)).repeat(6);
    let code: String = (0..900).map(|n| format!("    let frame_{n} = view({n});\n")).collect();
    let key = format!("token = \"{}\"\n{hash}\n", base64(7, 172));
    for text in
        [sums, bare, ids, integrity, numbers, listing, countries, names, modules, sheet, chinese, ruler, code, key]
    {
        check(&text, &text);
    }
}

fn chunks(path: &str, text: &str) -> Vec<TextChunk> {
    let rules = Rules::built_in();
    chunk(rules.rule(rules.for_path(&path.into())), text)
}

#[test]
fn lines_behind_payload_are_those_of_the_file() {
    let picture = wrapped_at(76, &base64(8, 30_000), "# ", "");
    let text = format!(
        "import heron\n\n{picture}\n\ndef migrate():\n    return 1\n\n\n{picture}\ndef rest():\n    return 2\n"
    );
    let found = chunks("a.py", &text);
    let shown: Vec<_> = found.iter().map(|chunk| (chunk.chunk.symbol.as_str(), chunk.chunk.lines)).collect();
    let line_of = |part: &str| text[..text.find(part).expect("it is there")].matches('\n').count() as u32 + 1;
    let (migrate, rest) = (line_of("def migrate"), line_of("def rest"));
    assert_eq!(shown.first().map(|(_, lines)| lines.first), Some(1));
    assert!(shown.iter().any(|(symbol, lines)| *symbol == "migrate" && lines.first == migrate), "{shown:?} {migrate}");
    let (_, last) = shown.last().expect("there are chunks");
    assert!(last.first <= rest && last.last == rest + 1, "{shown:?} {rest}");
    assert!(found.iter().all(|chunk| chunk.text.len() < 300), "{found:?}");
}

#[test]
fn a_change_inside_payload_moves_one_chunk_and_only_where_its_size_reads_otherwise() {
    let (picture, other) = (base64(9, 50_000), base64(10, 50_000));
    let text = |picture: &str| {
        format!("# One\n\nThe heron.\n\n# Two\n\n![x](data:image/png;base64,{picture})\n\n# Three\n\nThe end.\n")
    };
    let before = chunks("a.md", &text(&picture));
    assert_eq!(before, chunks("a.md", &text(&other)), "another picture of one size changes nothing that is searched");
    let shorter = chunks("a.md", &text(&picture[..10_000]));
    let differing = before.iter().zip(&shorter).filter(|(a, b)| a.text != b.text).count();
    assert_eq!((before.len(), shorter.len(), differing), (3, 3, 1));
}

#[test]
fn hostile_runs_take_linear_time() {
    let start = std::time::Instant::now();
    for part in ["\\", "A", "\\x4", "0 ", "a\\n", "AAAA,", "0123456789abcdef\n", "=", "aB", "é", "0x1 a "] {
        let text = part.repeat((1 << 20) / part.len());
        let condensed = Condensed::of(&text);
        let hidden = condensed.hidden(0..condensed.text().len()) as usize;
        assert_eq!(hidden + condensed.text().matches('\n').count(), text.matches('\n').count(), "{part:?}");
    }
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

/// Shows what is left out of a folder: `TIDEMILL_CORPUS=folder cargo test --release left_out -- --ignored --nocapture`.
#[test]
#[ignore = "looks at a folder that the environment names"]
fn left_out_of_a_corpus() {
    let (mut all, mut out, mut seconds) = (0, 0, 0.0);
    each_of_corpus(|name, _, text| {
        all += text.len();
        let start = std::time::Instant::now();
        let runs = runs(text);
        seconds += start.elapsed().as_secs_f64();
        for (run, kind) in runs {
            out += run.len();
            let head: String = text[run.clone()].chars().take(60).collect();
            eprintln!("{name} {kind:?} {} {head:?}", run.len());
        }
    });
    eprintln!("{out} of {all} bytes left out, found at {:.0} MB/s", all as f64 / 1e6 / seconds);
}
