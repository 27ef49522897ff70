//! How high is the cosine of an entry with an unrelated question? Below that a hit without a word of the question is marked weak.
//!
//! `TIDEMILL_BENCH_READER=STORE TIDEMILL_BENCH_REPO=/path/to/engine.git cargo bench --bench chance` searches an existing store,
//! of a repository whose sentences of documentation are the real questions. It counts three things:
//!
//! - cosines of questions of random words of the store with random entries that have none of those words;
//! - the greatest cosine of each of a thousand nonsense questions;
//! - how many hits, and how many first hits, are marked at each threshold, for real and for nonsense questions.
//!
//! The second chose the threshold in `src/search/doubt.rs`, and the third is its cost.

mod support;

use dataflows::data::SplitMix;
use dataflows::embed::Embedder;
use dataflows::memo::Memo;
use rustc_hash::FxHashSet;
use snapshots::Ordinal;
use std::path::PathBuf;
use support::questions::questions;
use support::{Machine, Repository, row};
use tidemill::embedders::StaticModel;
use tidemill::index::lexical::{analyze, searched_name};
use tidemill::search::{ListName, Mode, Request, Searcher};
use tidemill::store::Layout;

/// Questions of random words, and random entries for each.
const RANDOM: (usize, usize) = (1_000, 1_000);
/// Nonsense questions.
const MADE_UP: usize = 1_000;
/// Real questions.
const REAL: usize = 300;
/// Possible thresholds.
const THRESHOLDS: [f32; 8] = [0.28, 0.32, 0.34, 0.36, 0.40, 0.45, 0.50, 0.55];
/// Questions about an engine, in Chinese: their answers mostly share no word with them.
const CHINESE: [&str; 20] = [
    "如何生成相机实体",
    "向世界插入组件",
    "系统执行顺序之前之后",
    "渲染图节点",
    "异步资源加载器",
    "变换传播层级",
    "查询过滤器包含排除已更改",
    "着色器材质绑定组",
    "窗口大小调整事件",
    "动画剪辑混合",
    "界面布局弹性节点",
    "文本字体图集",
    "网格顶点属性",
    "场景序列化反射",
    "游戏手柄输入轴",
    "命令销毁子实体",
    "光照阴影级联",
    "调度运行条件状态",
    "音频播放",
    "生成实体",
];
/// Questions that are not about an engine.
const OFF_TOPIC: [&str; 20] = [
    "pomegranate juice recipe",
    "treaty of Westphalia",
    "banana tractor",
    "elephant mortgage",
    "baroque cello sonata",
    "kidney transplant waiting list",
    "olive harvest festival",
    "medieval monastery beer",
    "divorce lawyer fees",
    "knitting wool socks",
    "presidential election turnout",
    "malaria vaccine trial",
    "goalkeeper penalty shootout",
    "sourdough bread yeast",
    "ancient Greek philosophy",
    "airline baggage allowance",
    "orchid greenhouse humidity",
    "income tax refund",
    "violin teacher salary",
    "volcano eruption evacuation",
];

/// Words of numbers that are the same in every run.
struct Numbers(SplitMix);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound)
    }

    /// Returns a nonsense word: random letters, or syllables.
    fn word(&mut self) -> String {
        let length = 2 + self.below(3);
        if self.below(2) == 0 {
            return (0..2 * length).map(|_| self.letter("abcdefghijklmnopqrstuvwxyz")).collect();
        }
        let mut word = String::new();
        for _ in 0..length {
            word.push(self.letter("bcdfghjklmnpqrstvwxz"));
            word.push(self.letter("aeiou"));
        }
        word.push(self.letter("bdfgklmnprst"));
        word
    }

    fn letter(&mut self, of: &str) -> char {
        char::from(of.as_bytes()[self.below(of.len())])
    }
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder for temporary files can be made");
    let Some(store) = std::env::var_os("TIDEMILL_BENCH_READER").map(PathBuf::from) else {
        println!("TIDEMILL_BENCH_READER names no store; nothing to measure");
        return;
    };
    let repository = Repository::for_bench(folder.path());
    println!("{}", Machine::describe(&repository));
    let searcher = Searcher::open(&Layout::new(&store)).expect("the store can be read");
    let model = StaticModel::new();
    let mut numbers = Numbers(SplitMix::new(7));
    random_pairs(&searcher, &model, &mut numbers);
    let made_up: Vec<String> =
        (0..MADE_UP).map(|_| (0..2 + numbers.below(2)).map(|_| numbers.word()).collect::<Vec<_>>().join(" ")).collect();
    let greatest = |question: &String| {
        let request = Request { mode: Mode::Vector, k: 1, exact: true, ..Request::new(question) };
        searcher.search(&request).expect("the store can be read").hits.first().map(|hit| hit.score)
    };
    let maxima: Vec<f32> = made_up.iter().filter_map(greatest).collect();
    row(&format!("greatest cosine of {} questions that are made up", maxima.len()), percentiles(maxima));
    let real = questions(repository.path(), REAL);
    let chinese: Vec<String> = CHINESE.map(str::to_owned).to_vec();
    let off_topic: Vec<String> = OFF_TOPIC.map(str::to_owned).to_vec();
    for (what, questions) in
        [("real", &real), ("made up", &made_up), ("Chinese", &chinese), ("on other matters", &off_topic)]
    {
        let bytes = questions.iter().filter_map(|question| model.bytes_a_token(question).ok()?);
        row(&format!("bytes a token of questions: {what}"), percentiles(bytes.collect()));
    }
    for (what, questions) in [
        ("real", &real),
        ("Chinese", &chinese),
        ("on other matters", &off_topic),
        ("made up", &made_up[..REAL].to_vec()),
    ] {
        marked(&searcher, what, questions);
    }
}

/// Compares questions of random words with random entries that have none of them.
fn random_pairs(searcher: &Searcher, model: &StaticModel, numbers: &mut Numbers) {
    let reader = searcher.reader();
    let at = searcher.revisions().select(reader, None, None, None).expect("the store has a version");
    let versions: Vec<_> = at.iter().map(|at| at.version).collect();
    let view = reader.view(&versions).expect("the store can be read");
    let entries: Vec<Ordinal> = view.entries.iter().map(Ordinal::new).collect();
    let vectors = reader.vectors(&view).expect("the vectors can be read");
    let drawn: Vec<Ordinal> = (0..RANDOM.1).map(|_| entries[numbers.below(entries.len())]).collect();
    let texts: Vec<(Vec<f32>, Vec<String>)> = drawn
        .iter()
        .filter_map(|&ordinal| {
            let vector = vectors.vector_of(ordinal).ok()??;
            let record = reader.catalogue().entry(ordinal).ok()?;
            let text = reader.memo().text(record.entry.text)?;
            let words = analyze(&text).into_iter().map(|token| token.text).collect();
            Some((vector.into_iter().map(f32::from).collect(), words))
        })
        .collect();
    let mut cosines = Vec::new();
    for _ in 0..RANDOM.0 {
        let words: Vec<&String> = (0..2 + numbers.below(3))
            .filter_map(|_| {
                let words = &texts[numbers.below(texts.len())].1;
                (!words.is_empty()).then(|| &words[numbers.below(words.len())])
            })
            .collect();
        let question = words.iter().map(|word| word.as_str()).collect::<Vec<_>>().join(" ");
        let Ok(Some(vector)) = model.embed_query(&question) else { continue };
        for (other, _) in texts.iter().filter(|(_, held)| words.iter().all(|word| !held.contains(word))) {
            let product: f32 = vector.iter().zip(other).map(|(left, right)| left * right).sum();
            let length: f32 = other.iter().map(|part| part * part).sum();
            cosines.push(product / length.sqrt());
        }
    }
    row(&format!("cosines of {} random pairs without a word in common", cosines.len()), percentiles(cosines));
}

fn percentiles(mut values: Vec<f32>) -> String {
    values.sort_by(f32::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share) as usize];
    let shown = [0.5, 0.9, 0.99, 0.999, 0.9999].map(|share| format!("{:.3}", at(share)));
    format!("p50 {} p90 {} p99 {} p99.9 {} p99.99 {}", shown[0], shown[1], shown[2], shown[3], shown[4])
}

/// Counts hits without any word of their question and with a cosine below each threshold.
fn marked(searcher: &Searcher, what: &str, questions: &[String]) {
    let (mut hits, mut firsts) = (Vec::new(), Vec::new());
    for question in questions {
        let words: FxHashSet<String> = analyze(question).into_iter().map(|token| token.text).collect();
        let answer = searcher.search(&Request::new(question)).expect("the store can be read");
        let nearness = answer.hits.iter().map(|hit| {
            let name = searched_name(&hit.card);
            let held = [hit.text.as_str(), &name].into_iter().flat_map(analyze);
            let is_met = held.into_iter().any(|token| words.contains(&token.text));
            if is_met {
                f32::INFINITY
            } else {
                hit.ranks.of(&ListName::VECTOR).map_or(f32::INFINITY, |vector| vector.score)
            }
        });
        let nearness: Vec<f32> = nearness.collect();
        firsts.extend(nearness.first().copied());
        hits.extend(nearness);
    }
    let share = |values: &[f32], threshold: f32| {
        100.0 * values.iter().filter(|value| **value < threshold).count() as f64 / values.len().max(1) as f64
    };
    for threshold in THRESHOLDS {
        row(
            &format!("{} questions ({what}), marked below {threshold:.2}", questions.len()),
            format!("{:.2} % of hits, {:.2} % of first hits", share(&hits, threshold), share(&firsts, threshold)),
        );
    }
}
