//! The Markdown.

use crate::measure::Measured;
use std::fmt::Write;
use std::time::Duration;

/// Three digits.
fn time(of: Duration) -> String {
    let ns = of.as_secs_f64() * 1e9;
    let (number, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns => (ns / 1e6, "ms"),
    };
    format!("{} {unit}", digits(number))
}

fn digits(x: f64) -> String {
    let places = if x < 10.0 { 2 } else { usize::from(x < 100.0) };
    format!("{x:.places$}")
}

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
    model.map_or("an unnamed processor", |(_, name)| name).to_string()
}

/// The page: what was measured, and one table.
pub fn markdown(all: &[Measured], rows: usize) -> String {
    let isa = tilekern::Isa::detect().name();
    let mut page = format!(
        "# Sampling and its peers\n\n\
         Made by `cargo run --release --manifest-path benches/peers/Cargo.toml` on {}, {isa}, one thread; medians of {rows} calls, each \
         with another row, which is in the cache when the clock starts. The floor is a max-reduction of the row with eight accumulators. \
         candle is `LogitsProcessor` of candle-transformers 0.9.2 at temperature 1, its tensor made before the clock starts; sorting is \
         top-p by a full sort.\n\n\
         tilekern chooses by noise that the caller gives (`q`), but where it draws its own. `x floor` is the time relative to the floor, `x \
         candle` how many times as long candle takes for the same work (for min-p on top: without min-p).\n\n\
         ![time over vocabulary](peers.svg)\n\n\
         | rows | V | work | by | median | x floor | x candle |\n|---|---|---|---|---|---|---|\n",
        processor()
    );
    for m in all {
        let floor = digits(m.median.as_secs_f64() / m.floor.as_secs_f64());
        let peer = m.peer.map_or(String::new(), |peer| digits(peer.as_secs_f64() / m.median.as_secs_f64()));
        let (kind, v, work, by, median) = (m.kind.name(), m.v, m.work, m.by, time(m.median));
        writeln!(page, "| {kind} | {v} | {work} | {by} | {median} | {floor} | {peer} |").expect("a string takes all");
    }
    page
}
