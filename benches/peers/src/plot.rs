//! The SVG: time over vocabulary, both logarithmic.

use crate::measure::Measured;
use crate::rows::Kind;
use std::fmt::Write;

/// Who is drawn, and how.
const LINES: [(&str, &str, &str, &str); 10] = [
    ("floor", "maximum of the row", "#888888", "2 3"),
    ("tilekern", "argmax", "#1f77b4", ""),
    ("tilekern", "top-k 50", "#2ca02c", ""),
    ("tilekern", "top-k 50, top-p 0.9, min-p 0.05", "#17becf", ""),
    ("tilekern", "top-p 0.9", "#9467bd", ""),
    ("tilekern", "noise drawn, no filter", "#8c564b", ""),
    ("candle", "argmax", "#1f77b4", "6 3"),
    ("candle", "top-k 50", "#2ca02c", "6 3"),
    ("candle", "top-p 0.9", "#9467bd", "6 3"),
    ("sorting", "top-p 0.9", "#d62728", "6 3"),
];

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 560.0;
/// Of the field, inside.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 600.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 510.0;

struct Axes {
    v: (f64, f64),
    seconds: (f64, f64),
}

impl Axes {
    fn x(&self, v: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (v / self.v.0).ln() / (self.v.1 / self.v.0).ln()
    }

    fn y(&self, seconds: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * (seconds / self.seconds.0).ln() / (self.seconds.1 / self.seconds.0).ln()
    }
}

/// Of the normal rows.
pub fn svg(all: &[Measured]) -> String {
    let points: Vec<&Measured> = all.iter().filter(|m| m.kind == Kind::Normal).collect();
    let range = |values: &mut dyn Iterator<Item = f64>| values.fold((f64::INFINITY, 0.0f64), |(a, b), x| (a.min(x), b.max(x)));
    let v = range(&mut points.iter().map(|m| m.v as f64));
    let seconds = range(&mut points.iter().map(|m| m.median.as_secs_f64()));
    let decade = |x: f64, up: bool| 10f64.powf(if up { x.log10().ceil() } else { x.log10().floor() });
    let axes = Axes { v: (v.0 * 0.9, v.1 * 1.1), seconds: (decade(seconds.0, false), decade(seconds.1, true)) };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    grid(&mut svg, &axes, &points);
    for (n, &(by, work, colour, dashes)) in LINES.iter().enumerate() {
        let line: Vec<&&Measured> = points.iter().filter(|m| m.by == by && m.work == work).collect();
        let at = |m: &Measured| format!("{:.1},{:.1}", axes.x(m.v as f64), axes.y(m.median.as_secs_f64()));
        let path: Vec<String> = line.iter().map(|m| at(m)).collect();
        let style = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"");
        let key = 40.0 + 24.0 * n as f64;
        let text = format!("{by}: {work}");
        put(&mut svg, format_args!("<polyline points=\"{}\" {style}/>", path.join(" ")));
        for point in &path {
            let (x, y) = point.split_once(',').expect("two numbers");
            put(&mut svg, format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"3\" fill=\"{colour}\"/>"));
        }
        put(&mut svg, format_args!("<line x1=\"615\" x2=\"645\" y1=\"{key}\" y2=\"{key}\" {style}/>"));
        put(&mut svg, format_args!("<text x=\"652\" y=\"{}\">{text}</text>", key + 4.0));
    }
    svg + "</svg>\n"
}

fn put(svg: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(svg, "{line}").expect("a string takes all");
}

/// A line for each vocabulary and each decade.
fn grid(svg: &mut String, axes: &Axes, points: &[&Measured]) {
    let mut vocabularies: Vec<usize> = points.iter().map(|m| m.v).collect();
    vocabularies.dedup();
    for (n, v) in vocabularies.into_iter().enumerate() {
        let x = axes.x(v as f64);
        // Neighbours that are close stand one above the other.
        let y = BOTTOM + 18.0 + 14.0 * (n % 2) as f64;
        put(svg, format_args!("<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{BOTTOM}\" stroke=\"#dddddd\"/>"));
        put(svg, format_args!("<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{v}</text>"));
    }
    let mut seconds = axes.seconds.0;
    while seconds < axes.seconds.1 * 1.01 {
        let y = axes.y(seconds);
        let name = ["1 ns", "10 ns", "100 ns", "1 us", "10 us", "100 us", "1 ms", "10 ms", "100 ms", "1 s"];
        let label = name.get((seconds.log10() + 9.0).round() as usize).copied().unwrap_or("");
        put(svg, format_args!("<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>"));
        put(svg, format_args!("<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>", LEFT - 6.0, y + 4.0));
        seconds *= 10.0;
    }
    put(svg, format_args!("<text x=\"335\" y=\"552\" text-anchor=\"middle\">tokens in the vocabulary</text>"));
}
