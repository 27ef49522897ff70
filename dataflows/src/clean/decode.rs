//! Decodes bytes to characters.
//!
//! In: any bytes, and the encoding that the rule or the tree gives, if one does. Out: text, or why the bytes are none.
//!
//! **Invariant:** the answer follows from the bytes, the given encoding and the order of trials below; without a given encoding
//! valid UTF-8 without NUL comes out as it is.
//!
//! 1. A byte order mark is believed.
//! 2. The given encoding, where nearly all bytes are of it.
//! 3. A NUL in the first 8,000 bytes (where git looks, `buffer_is_binary` in git's `xdiff-interface.c`) is either
//!    explained by UTF-16 or UTF-32 without a mark, or the content is binary.
//! 4. UTF-8, also with a few broken bytes.
//! 5. The guess of Firefox's detector, unless the result is mostly control characters. If it guesses Korean but the bytes are
//!    Chinese, Chinese.

use crate::data::{Conversion, Evidence, SkipReason};
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{EUC_KR, Encoding, GBK, UTF_16BE, UTF_16LE};

/// How far git looks for a NUL.
const BINARY_WINDOW: usize = 8_000;

/// So many bytes beyond ASCII are enough for the detector: some 32 Chinese characters, or the accents of a page.
const ENOUGH_TO_GUESS: usize = 64;

/// Byte order of a wide encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn unit(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }
}

/// A text, and its original encoding if that was not UTF-8.
type Decoded = (String, Option<Conversion>);

fn from(encoding: &str, by: Evidence) -> Option<Conversion> {
    Some(Conversion { encoding: encoding.to_ascii_lowercase(), by })
}

/// Returns the text that `bytes` encode.
pub(super) fn decode(bytes: &[u8], given: Option<(&'static Encoding, Evidence)>) -> Result<Decoded, SkipReason> {
    let marked = |(text, encoding): (String, &str)| (text, from(encoding, Evidence::Mark));
    let (text, from) = match bytes {
        [0xFF, 0xFE, 0, 0, rest @ ..] => {
            marked(utf32(rest, Order::Little).map_or_else(|| utf16(&bytes[2..], UTF_16LE), Ok)?)
        }
        [0, 0, 0xFE, 0xFF, rest @ ..] => marked(utf32(rest, Order::Big).ok_or(SkipReason::Binary)?),
        [0xFF, 0xFE, rest @ ..] => marked(utf16(rest, UTF_16LE)?),
        [0xFE, 0xFF, rest @ ..] => marked(utf16(rest, UTF_16BE)?),
        [0xEF, 0xBB, 0xBF, rest @ ..] => narrow(rest)?,
        _ => match given.and_then(|(charset, by)| Some((as_told(bytes, charset)?, from(charset.name(), by)))) {
            Some(told) => told,
            None => narrow(bytes)?,
        },
    };
    let window = text.len().min(BINARY_WINDOW);
    if text.as_bytes()[..window].contains(&0) {
        return Err(SkipReason::Binary);
    }
    // After the window a NUL does not make a content binary, but no later stage wants one.
    Ok((if text.contains('\0') { text.replace('\0', "\u{FFFD}") } else { text }, from))
}

/// Decodes bytes as they are said to be encoded, unless one in ten of the characters beyond ASCII, or more, is none there.
fn as_told(bytes: &[u8], charset: &'static Encoding) -> Option<String> {
    let (text, is_broken) = charset.decode_without_bom_handling(bytes);
    if is_broken {
        let beyond = text.chars().filter(|character| !character.is_ascii());
        let (broken, whole): (Vec<char>, Vec<char>) =
            beyond.partition(|character| *character == char::REPLACEMENT_CHARACTER);
        if broken.len() * 10 > whole.len() {
            return None;
        }
    }
    Some(text.into_owned())
}

/// Decodes bytes without a wide byte order mark.
fn narrow(bytes: &[u8]) -> Result<Decoded, SkipReason> {
    if bytes[..bytes.len().min(BINARY_WINDOW)].contains(&0) {
        let (text, encoding) = wide_without_mark(bytes).ok_or(SkipReason::Binary)?;
        return Ok((text, from(encoding, Evidence::Nulls)));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok((text.to_owned(), None));
    }
    if is_nearly_utf8(bytes) {
        return Ok((String::from_utf8_lossy(bytes).into_owned(), None));
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let guessed = detector.guess(None, Utf8Detection::Deny);
    let encoding = if guessed == EUC_KR && is_chinese(bytes) { GBK } else { guessed };
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    if is_mostly_control(&text) {
        return Err(SkipReason::Undecodable);
    }
    let beyond = bytes.iter().filter(|byte| !byte.is_ascii()).count();
    let by = if beyond < ENOUGH_TO_GUESS { Evidence::Unsure } else { Evidence::Guess };
    Ok((text.into_owned(), from(encoding.name(), by)))
}

/// Tells whether text that may be Korean is Chinese: both encode a character in two bytes of one range.
///
/// KS X 1001 has its 2,350 syllables in the rows `B0` to `C8`, and Chinese characters, which are rare in modern Korean, in `CA`
/// to `FD`. GB 2312 has the frequent characters in `B0` to `D7`, ordered by sound, so four in ten are above `C8`.
fn is_chinese(bytes: &[u8]) -> bool {
    let (mut all, mut behind, mut at) = (0_usize, 0_usize, 0);
    while at < bytes.len() {
        let lead = bytes[at];
        all += usize::from((0xB0..=0xFD).contains(&lead));
        behind += usize::from((0xC9..=0xFD).contains(&lead));
        at += if lead < 0x80 { 1 } else { 2 };
    }
    behind * 10 > all && GBK.decode_without_bom_handling_and_without_replacement(bytes).is_some()
}

/// Tells whether broken sequences are few beside whole ones: a UTF-8 file with an error in it.
///
/// One in ten, because in a text of another encoding hardly any two bytes form a sequence by chance.
fn is_nearly_utf8(bytes: &[u8]) -> bool {
    let (mut whole, mut broken) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        whole += chunk.valid().chars().filter(|character| !character.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    broken * 10 <= whole
}

/// Tells whether more than a tenth of the characters are control characters.
///
/// Random bytes without NUL give some 12 % as windows-1252, text next to nothing.
fn is_mostly_control(text: &str) -> bool {
    let (mut all, mut control) = (0_usize, 0_usize);
    for character in text.chars() {
        all += 1;
        control += usize::from(is_no_text(character));
    }
    control * 10 > all
}

fn is_no_text(character: char) -> bool {
    let layout = matches!(character, '\t' | '\n' | '\r' | '\x0C' | '\x1B');
    (character.is_control() && !layout) || character == '\u{FFFD}'
}

fn utf16(bytes: &[u8], encoding: &'static Encoding) -> Result<(String, &'static str), SkipReason> {
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    if is_mostly_control(&text) { Err(SkipReason::Binary) } else { Ok((text.into_owned(), encoding.name())) }
}

fn utf32(bytes: &[u8], order: Order) -> Option<(String, &'static str)> {
    if !bytes.len().is_multiple_of(4) {
        return None;
    }
    let mut text = String::with_capacity(bytes.len() / 4);
    for unit in bytes.chunks_exact(4) {
        let unit = unit.try_into().expect("chunks of four bytes are four bytes");
        let code = match order {
            Order::Little => u32::from_le_bytes(unit),
            Order::Big => u32::from_be_bytes(unit),
        };
        text.push(char::from_u32(code)?);
    }
    Some((text, "utf-32"))
}

/// Returns the text of UTF-16 or UTF-32 without a byte order mark, if the NULs are where those encodings put them.
fn wide_without_mark(bytes: &[u8]) -> Option<(String, &'static str)> {
    for order in [Order::Little, Order::Big] {
        // Half of all three-byte numbers are characters of rare planes; no real text consists of those.
        let is_common = |text: &str| {
            let rare = text.chars().take(BINARY_WINDOW).filter(|character| u32::from(*character) > 0xFFFF).count();
            rare * 4 <= text.chars().take(BINARY_WINDOW).count()
        };
        if let Some(text) = utf32(bytes, order).filter(|(text, _)| is_plausible(text) && is_common(text)) {
            return Some(text);
        }
    }
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let window = &bytes[..bytes.len().min(BINARY_WINDOW)];
    let units = |order: Order| window.as_chunks().0.iter().map(move |unit| order.unit(*unit));
    let usual = |order: Order| units(order).filter(|unit| is_usual(*unit)).count();
    let (order, encoding) = match (usual(Order::Little), usual(Order::Big)) {
        (little, big) if little > big => (Order::Little, UTF_16LE),
        (little, big) if big > little => (Order::Big, UTF_16BE),
        _ => return None,
    };
    // European text has mostly NUL as high bytes. Text in other scripts has few NULs; then its bytes must not read as ASCII text
    // with a NUL in it.
    let narrow_units = units(order).filter(|unit| *unit < 0x100).count() * 5 >= window.len() / 2 * 2;
    let printable = window.iter().filter(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()).count();
    let zeros = window.iter().filter(|byte| **byte == 0).count();
    if !narrow_units && printable * 4 >= (window.len() - zeros) * 3 {
        return None;
    }
    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
    is_plausible(&text).then(|| (text.into_owned(), encoding.name()))
}

/// Tells whether a UTF-16 unit is ASCII, or Chinese or Japanese punctuation, which every text contains.
fn is_usual(unit: u16) -> bool {
    matches!(unit, 0x0A | 0x20..=0x7E | 0x3001 | 0x3002 | 0xFF0C)
}

/// Tells whether every character is plausible in text; this confirms a guessed width.
fn is_plausible(text: &str) -> bool {
    let private = |character: char| matches!(u32::from(character), 0xE000..=0xF8FF | 0xF_0000.. | 0xFFFE | 0xFFFF);
    !text.is_empty() && text.chars().take(BINARY_WINDOW).all(|character| !is_no_text(character) && !private(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guessed(bytes: &[u8]) -> Result<String, SkipReason> {
        decode(bytes, None).map(|(text, _)| text)
    }

    fn told(bytes: &[u8], charset: &'static Encoding) -> Result<String, SkipReason> {
        decode(bytes, Some((charset, Evidence::Rule))).map(|(text, _)| text)
    }

    #[test]
    fn what_was_converted_says_from_which_encoding_and_how_sure_that_is() {
        let by = |bytes: &[u8], charset: Option<&'static Encoding>| {
            let (_, from) = decode(bytes, charset.map(|charset| (charset, Evidence::Rule))).expect("it is text");
            from.map(|from| (from.encoding, from.by))
        };
        let named = |encoding: &str, by| Some((encoding.to_owned(), by));
        let chinese = GBK.encode(&"着色器编译失败。".repeat(5)).0.into_owned();
        assert_eq!(by("größer".as_bytes(), None), None);
        assert_eq!(by("\u{FEFF}größer".as_bytes(), None), None);
        assert_eq!(by(&chinese, None), named("gbk", Evidence::Guess));
        assert_eq!(by(&chinese[..8], None), named("gbk", Evidence::Unsure));
        assert_eq!(by(&chinese[..8], Some(GBK)), named("gbk", Evidence::Rule));
        assert_eq!(by(&wide("\u{FEFF}a", Order::Big, 2), None), named("utf-16be", Evidence::Mark));
        assert_eq!(by(&wide("one line\n", Order::Little, 4), None), named("utf-32", Evidence::Nulls));
    }

    fn wide(text: &str, order: Order, width: usize) -> Vec<u8> {
        let units: Vec<u32> = if width == 4 {
            text.chars().map(u32::from).collect()
        } else {
            text.encode_utf16().map(u32::from).collect()
        };
        let bytes = |unit: u32| match order {
            Order::Little => unit.to_le_bytes()[..width].to_vec(),
            Order::Big => unit.to_be_bytes()[4 - width..].to_vec(),
        };
        units.into_iter().flat_map(bytes).collect()
    }

    #[test]
    fn text_in_any_usual_encoding_becomes_utf8() {
        let latin = "Grüße aus Köln, der Text ist lang genug für eine Schätzung.\nUnd eine zweite Zeile.\n";
        let russian = "Привет, мир! Это обычный текст на русском языке.\n";
        let chinese = "渲染器在每一帧开始时提取实体。\n第二行文字，没有拉丁字母。\n";
        for text in [latin, russian, chinese] {
            assert_eq!(guessed(text.as_bytes()).as_deref(), Ok(text));
            assert_eq!(guessed(&[b"\xEF\xBB\xBF", text.as_bytes()].concat()).as_deref(), Ok(text));
            for (order, width) in [(Order::Little, 2), (Order::Big, 2), (Order::Little, 4), (Order::Big, 4)] {
                let mark = wide("\u{FEFF}", order, width);
                assert_eq!(
                    guessed(&[mark, wide(text, order, width)].concat()).as_deref(),
                    Ok(text),
                    "{order:?} {width}"
                );
                assert_eq!(guessed(&wide(text, order, width)).as_deref(), Ok(text), "no mark, {order:?} {width}");
            }
        }
        let (windows, _, _) = encoding_rs::WINDOWS_1252.encode(latin);
        assert_eq!(guessed(&windows).as_deref(), Ok(latin));
        let (windows, _, _) = encoding_rs::WINDOWS_1251.encode(russian);
        assert_eq!(guessed(&windows).as_deref(), Ok(russian));
        let japanese = "エンジンは毎フレーム、エンティティを抽出します。これは日本語の文章です。";
        let (shift, _, _) = encoding_rs::SHIFT_JIS.encode(japanese);
        assert_eq!(guessed(&shift).as_deref(), Ok(japanese));
    }

    #[test]
    fn short_chinese_is_not_taken_for_korean_nor_korean_for_chinese() {
        for text in ["渲染器在每一帧开始时提取实体。\n", "你好，世界\n", "// 保存设置\nint a = 1;\n", "着色器编译失败"]
        {
            let (bytes, _, _) = GBK.encode(text);
            assert_eq!(guessed(&bytes).as_deref(), Ok(text));
        }
        for text in
            ["렌더러는 매 프레임마다 엔티티를 추출합니다.\n", "안녕하세요, 세계\n", "// 설정을 저장한다\nint a = 1;\n"]
        {
            let (bytes, _, _) = EUC_KR.encode(text);
            assert_eq!(guessed(&bytes).as_deref(), Ok(text));
        }
    }

    #[test]
    fn what_the_rule_says_comes_before_every_guess_but_not_before_a_mark() {
        let text = "着色";
        let (bytes, _, _) = GBK.encode(text);
        assert_eq!(told(&bytes, GBK).as_deref(), Ok(text));
        let (cyrillic, _, _) = encoding_rs::KOI8_R.encode("Привет");
        assert_eq!(told(&cyrillic, encoding_rs::KOI8_R).as_deref(), Ok("Привет"));
        assert_eq!(told(&wide("ключ", Order::Little, 2), UTF_16LE).as_deref(), Ok("ключ"));
        assert_eq!(told("\u{FEFF}Größe".as_bytes(), GBK).as_deref(), Ok("Größe"), "a mark is believed");
        let slip = [&GBK.encode(&"着色器编译失败。".repeat(4)).0[..], b"\xFF\n"].concat();
        assert!(told(&slip, GBK).is_ok_and(|text| text.starts_with("着色器")), "a slip changes nothing");
        assert_eq!(told("größer".as_bytes(), encoding_rs::ISO_2022_JP).as_deref(), Ok("größer"), "it is none");
        assert_eq!(told(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", GBK), Err(SkipReason::Binary));
    }

    #[test]
    fn a_slip_in_utf8_does_not_turn_the_file_into_another_encoding() {
        let text = "Заметки о рендере. ".repeat(20);
        let broken = [text.as_bytes(), b"\xFF", text.as_bytes()].concat();
        assert_eq!(guessed(&broken), Ok(format!("{text}\u{FFFD}{text}")));
    }

    #[test]
    fn a_nul_that_no_encoding_explains_is_binary() {
        for bytes in [
            b"abc\0defg".as_slice(),
            b"hello\0world",
            b"\0",
            b"\0\x01\x02\0",
            b"\0\x03\x91\x07\x22\x15\x02\0",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
            b"\xCA\xFE\xBA\xBE\0\0\0\x34",
            b"a\0b\0c\0\0\0\0\0\0\0",
            b"\xFF\xFE\0\0\0\0\0\0",
            b"\xEF\xBB\xBFa\0b",
        ] {
            assert_eq!(guessed(bytes), Err(SkipReason::Binary), "{bytes:?}");
        }
        let floats: Vec<u8> = (0..500).flat_map(|i| (i as f32 * 0.37).to_le_bytes()).collect();
        assert_eq!(guessed(&floats), Err(SkipReason::Binary));
    }

    #[test]
    fn a_late_nul_is_replaced_and_noise_is_refused() {
        let mut bytes = vec![b'a'; 9_000];
        bytes[8_500] = 0;
        assert_eq!(guessed(&bytes).map(|text| text.matches('\u{FFFD}').count()), Ok(1));
        let mut state = 1_u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .filter(|byte| *byte != 0)
        .take(10_000)
        .collect();
        assert_eq!(guessed(&noise), Err(SkipReason::Undecodable));
        assert_eq!(guessed(b""), Ok(String::new()));
    }
}
