//! Plots as SVG, drawn by hand: points, lines and bars over two axes.
//!
//! In: figures. Out: an `svg` element for a page that has [`STYLE`], or a file that needs nothing from outside.
//! **Invariant:** every figure that is not finite is left out, and every label is escaped.

use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 28.0;
const RIGHT: f64 = 12.0;
/// Points that are drawn at the most; more would only make the page slow.
const MOST: usize = 4_000;

/// How plots look, by light and by dark, in a page and in a file of their own.
pub(super) const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1b2330; --paper: #fff; --soft: #66707f; --grid: #d8dde5; --one: #1f6f8b; --two: #c2532f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --paper: #14181f; --soft: #97a1b0; --grid: #2d3542; --one: #5cb3cf; --two: #ee8a63; } }
svg text { font: 11px system-ui, sans-serif; fill: var(--soft); } svg .title { font-size: 13px; font-weight: 600; fill: var(--ink); }
.grid { stroke: var(--grid); } .bar { fill: var(--one); fill-opacity: .75; } .line { fill: none; stroke: var(--one); stroke-width: 1.5; }
.dots { fill: none; stroke: var(--one); stroke-opacity: .75; stroke-width: 3.6; stroke-linecap: round; } .fit { stroke: var(--two); stroke-width: 2; }
";

/// Makes a file of its own of a plot.
pub(super) fn file(svg: &str) -> String {
    let (open, rest) = svg.split_at(svg.find('>').map_or(0, |end| end + 1));
    let open = open.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"", 1);
    format!("{open}<style>{STYLE}</style><rect width=\"100%\" height=\"100%\" fill=\"var(--paper)\"/>{rest}\n")
}

/// Returns text as it may stand in a page.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// What is drawn over two axes.
pub(super) struct Plot<'a> {
    pub(super) title: &'a str,
    pub(super) x: &'a str,
    pub(super) y: &'a str,
    pub(super) points: Vec<(f64, f64)>,
    /// Whether neighbours are joined.
    pub(super) joined: bool,
    /// A line from one point to another.
    pub(super) fit: Option<[(f64, f64); 2]>,
}

impl Plot<'_> {
    /// Draws it.
    pub(super) fn svg(&self) -> String {
        let step = self.points.len().div_ceil(MOST).max(1);
        let finite = |point: &&(f64, f64)| point.0.is_finite() && point.1.is_finite();
        let points: Vec<(f64, f64)> = self.points.iter().step_by(step).filter(finite).copied().collect();
        let most = |figure: fn(&(f64, f64)) -> f64| points.iter().map(figure).fold(0.0, f64::max);
        let (end_x, end_y) = (ceiling(most(|point| point.0)), ceiling(most(|point| point.1)));
        let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        let place = |(x, y): (f64, f64)| (LEFT + x / end_x * wide, TOP + high - (y / end_y).clamp(0.0, 1.0) * high);
        let mut svg = open(self.title);
        axes(&mut svg, self.x, self.y, end_x, end_y);
        if self.joined {
            let line: Vec<String> =
                points.iter().map(|point| place(*point)).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let _ = write!(svg, "<polyline class=\"line\" points=\"{}\"/>", line.join(" "));
        } else {
            // One path with lines of no length, each a dot: a tenth of the bytes of as many circles.
            svg.push_str("<path class=\"dots\" d=\"");
            for (x, y) in points.iter().map(|point| place(*point)) {
                let _ = write!(svg, "M{x:.1} {y:.1}h0");
            }
            svg.push_str("\"/>");
        }
        if let Some([from, to]) = self.fit.map(|ends| ends.map(place)) {
            let _ = write!(
                svg,
                "<line class=\"fit\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
                from.0, from.1, to.0, to.1
            );
        }
        svg + "</svg>"
    }
}

/// Draws one bar for each figure.
pub(super) fn bars(title: &str, y: &str, figures: &[(String, f64)]) -> String {
    let end = ceiling(figures.iter().map(|figure| figure.1).filter(|figure| figure.is_finite()).fold(0.0, f64::max));
    let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let mut svg = open(title);
    axes(&mut svg, "", y, 0.0, end);
    let share = wide / figures.len().max(1) as f64;
    for (at, (label, figure)) in figures.iter().enumerate() {
        let tall = if figure.is_finite() { figure / end * high } else { 0.0 };
        let left = LEFT + share * at as f64;
        let _ = write!(
            svg,
            "<rect class=\"bar\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{tall:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            left + share * 0.1,
            TOP + high - tall,
            share * 0.8,
            left + share / 2.0,
            HEIGHT - BOTTOM + 14.0,
            escape(label)
        );
    }
    svg + "</svg>"
}

fn open(title: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{0}\"><text class=\"title\" x=\"{LEFT}\" y=\"16\">{0}</text>",
        escape(title)
    )
}

fn axes(svg: &mut String, x: &str, y: &str, end_x: f64, end_y: f64) {
    let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    for quarter in 0..=4 {
        let share = f64::from(quarter) / 4.0;
        let at = TOP + high - share * high;
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            short(share * end_y)
        );
        if end_x > 0.0 {
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                LEFT + share * wide,
                HEIGHT - BOTTOM + 14.0,
                short(share * end_x)
            );
        }
    }
    let _ = write!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text><text transform=\"translate(12 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        LEFT + wide / 2.0,
        HEIGHT - 8.0,
        escape(x),
        TOP + high / 2.0,
        escape(y)
    );
}

/// Returns the next round number: 1, 2, 2.5 or 5 by a power of ten.
fn ceiling(most: f64) -> f64 {
    if most <= 0.0 || !most.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(most.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|step| step * power).find(|end| *end >= most).unwrap_or(most)
}

fn short(figure: f64) -> String {
    match figure {
        0.0 => "0".to_owned(),
        _ if figure >= 1e6 => format!("{:.3}M", figure / 1e6).replace(".000", ""),
        _ if figure >= 100.0 => format!("{figure:.0}"),
        _ => format!("{figure:.3}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_holds_every_point_and_no_markup_of_its_labels() {
        let points = vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 4.0)];
        let svg = Plot { title: "<b>", x: "x", y: "y", points, joined: false, fit: None }.svg();
        assert_eq!(svg.matches("h0").count(), 2, "what is no number is left out");
        assert!(!svg.contains("<b>") && svg.contains("&lt;b&gt;"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (most, end) in [(0.0, 1.0), (0.9, 1.0), (1.1, 2.0), (23.0, 25.0), (260.0, 500.0), (7e5, 1e6)] {
            assert!((ceiling(most) - end).abs() < 1e-9 * end, "{most}");
        }
    }
}
