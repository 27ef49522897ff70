//! Draws plots as SVG: points, lines and bars over two axes.
//!
//! In: figures. Out: an `svg` element for a page that has [`STYLE`], or a self-contained file. **Invariant:** figures that are
//! not finite are left out, and every label is escaped.

use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 28.0;
const RIGHT: f64 = 24.0;
/// Most points that are drawn; more would only make the page slow.
const MOST: usize = 4_000;

/// The style of plots, light and dark, in a page and in a separate file.
pub(crate) const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1b2330; --paper: #fff; --soft: #66707f; --grid: #d8dde5; --one: #1f6f8b; --two: #c2532f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --paper: #14181f; --soft: #97a1b0; --grid: #2d3542; --one: #5cb3cf; --two: #ee8a63; } }
svg text { font: 11px system-ui, sans-serif; fill: var(--soft); } svg .title { font-size: 13px; font-weight: 600; fill: var(--ink); }
.paper { fill: var(--paper); } .grid { stroke: var(--grid); } .bar { fill: var(--one); fill-opacity: .75; } .line { fill: none; stroke: var(--one); stroke-width: 1.5; }
.dots { fill: none; stroke: var(--one); stroke-opacity: .75; stroke-width: 3.6; stroke-linecap: round; } .fit { fill: none; stroke: var(--two); stroke-width: 2; }
";

/// Makes a separate file of a plot.
pub(super) fn file(svg: &str) -> String {
    let (open, rest) = svg.split_at(svg.find('>').map_or(0, |end| end + 1));
    let open = open.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"", 1);
    format!("{open}<style>{STYLE}</style><rect class=\"paper\" width=\"100%\" height=\"100%\"/>{rest}\n")
}

/// Returns text with HTML escapes.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A plot over two axes.
pub(super) struct Plot<'a> {
    pub(super) title: &'a str,
    pub(super) x: &'a str,
    pub(super) y: &'a str,
    pub(super) points: Vec<(f64, f64)>,
    /// Whether neighbours are joined.
    pub(super) joined: bool,
    /// Whether the scale is logarithmic, for figures that are decades apart. 0 is at the lower end.
    pub(super) decades: bool,
    /// A line: its value at 0, and its slope.
    pub(super) fit: Option<(f64, f64)>,
}

impl Plot<'_> {
    /// Draws it.
    pub(super) fn svg(&self) -> String {
        let step = self.points.len().div_ceil(MOST).max(1);
        let finite = |point: &&(f64, f64)| point.0.is_finite() && point.1.is_finite();
        let points: Vec<(f64, f64)> = self.points.iter().step_by(step).filter(finite).copied().collect();
        let axis = |figure: fn(&(f64, f64)) -> f64| Axis::over(points.iter().map(figure), self.decades);
        let (over_x, over_y) = (axis(|point| point.0), axis(|point| point.1));
        let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        let place = |(x, y): (f64, f64)| (LEFT + over_x.share(x) * wide, TOP + high - over_y.share(y) * high);
        let mut svg = open(self.title);
        axes(&mut svg, self.x, self.y, Some(&over_x), &over_y);
        let line = |points: &mut dyn Iterator<Item = (f64, f64)>| -> String {
            points.map(place).map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
        };
        if self.joined {
            let _ = write!(svg, "<polyline class=\"line\" points=\"{}\"/>", line(&mut points.iter().copied()));
        } else {
            // One path with zero-length lines, each a dot: a tenth of the bytes of as many circles.
            svg.push_str("<path class=\"dots\" d=\"");
            for (x, y) in points.iter().map(|point| place(*point)) {
                let _ = write!(svg, "M{x:.1} {y:.1}h0");
            }
            svg.push_str("\"/>");
        }
        if let Some((base, slope)) = self.fit {
            // On a logarithmic scale a straight line is a curve.
            let end = points.iter().map(|point| point.0).fold(0.0, f64::max);
            let along = (0..=40).map(|step| over_x.at(f64::from(step) / 40.0)).filter(|x| *x <= end);
            let _ =
                write!(svg, "<polyline class=\"fit\" points=\"{}\"/>", line(&mut along.map(|x| (x, base + slope * x))));
        }
        svg + "</svg>"
    }
}

/// Draws one bar for each figure.
pub(super) fn bars(title: &str, y: &str, figures: &[(String, f64)]) -> String {
    let over_y = Axis::over(figures.iter().map(|figure| figure.1).filter(|figure| figure.is_finite()), false);
    let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let mut svg = open(title);
    axes(&mut svg, "", y, None, &over_y);
    let share = wide / figures.len().max(1) as f64;
    for (at, (label, figure)) in figures.iter().enumerate() {
        let tall = if figure.is_finite() { over_y.share(*figure) * high } else { 0.0 };
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

/// The range of an axis.
struct Axis {
    low: f64,
    high: f64,
    decades: bool,
}

impl Axis {
    /// Covers all figures: from 0 to a round number, or whole decades.
    fn over(figures: impl Iterator<Item = f64> + Clone, decades: bool) -> Self {
        let most = figures.clone().fold(0.0, f64::max);
        let least = figures.filter(|figure| *figure > 0.0).fold(f64::INFINITY, f64::min);
        if !decades || !least.is_finite() {
            return Self { low: 0.0, high: ceiling(most), decades: false };
        }
        let power = |exponent: f64| 10_f64.powf(exponent);
        let (low, high) = (least.log10().floor(), most.log10().ceil());
        Self { low: power(low), high: power(high.max(low + 1.0)), decades }
    }

    /// Returns the position of a figure along the axis, from 0 to 1.
    fn share(&self, figure: f64) -> f64 {
        let share = if self.decades {
            (figure.max(self.low) / self.low).log10() / (self.high / self.low).log10()
        } else {
            figure / self.high
        };
        share.clamp(0.0, 1.0)
    }

    /// Returns the figure at a position along the axis.
    fn at(&self, share: f64) -> f64 {
        if self.decades { self.low * (self.high / self.low).powf(share) } else { share * self.high }
    }

    /// Returns the figures of the labels: every quarter, or every decade.
    fn ticks(&self) -> Vec<f64> {
        let steps = if self.decades { (self.high / self.low).log10().round().max(1.0) } else { 4.0 };
        (0..=steps as u32).map(|step| f64::from(step) / steps).collect()
    }
}

fn axes(svg: &mut String, x: &str, y: &str, over_x: Option<&Axis>, over_y: &Axis) {
    let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    for share in over_y.ticks() {
        let at = TOP + high - share * high;
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            short(over_y.at(share))
        );
    }
    for (share, figure) in over_x.iter().flat_map(|axis| axis.ticks().into_iter().map(|share| (share, axis.at(share))))
    {
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            LEFT + share * wide,
            HEIGHT - BOTTOM + 14.0,
            short(figure)
        );
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
        _ if figure >= 0.001 => format!("{figure:.3}").trim_end_matches('0').trim_end_matches('.').to_owned(),
        _ => format!("{figure:.0e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_holds_every_point_and_no_markup_of_its_labels() {
        let points = vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 4.0)];
        let svg = Plot { title: "<b>", x: "x", y: "y", points, joined: false, decades: false, fit: None }.svg();
        assert_eq!(svg.matches("h0").count(), 2, "what is no number is left out");
        assert!(!svg.contains("<b>") && svg.contains("&lt;b&gt;"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn equal_ratios_are_equal_lengths_over_decades() {
        let axis = Axis::over([0.0, 0.02, 3.0, 700.0].into_iter(), true);
        assert_eq!((axis.low, axis.high, axis.ticks().len()), (0.01, 1000.0, 6));
        assert!((axis.share(1.0) - 0.4).abs() < 1e-9 && (axis.share(10.0) - 0.6).abs() < 1e-9);
        assert_eq!((axis.share(0.0), axis.share(1e9)), (0.0, 1.0), "what does not fit stands at an end");
        assert!((axis.at(axis.share(42.0)) - 42.0).abs() < 1e-9);
        let nothing = Axis::over([0.0].into_iter(), true);
        assert_eq!((nothing.share(0.0), nothing.at(1.0)), (0.0, 1.0));
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (most, end) in [(0.0, 1.0), (0.9, 1.0), (1.1, 2.0), (23.0, 25.0), (260.0, 500.0), (7e5, 1e6)] {
            assert!((ceiling(most) - end).abs() < 1e-9 * end, "{most}");
        }
    }
}
