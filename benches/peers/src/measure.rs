//! The clock.

use crate::contenders::{Entry, contenders};
use crate::rows::Kind;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Turns that the contenders take.
const TURNS: usize = 3;

/// What a contender took.
pub struct Measured {
    pub kind: Kind,
    pub v: usize,
    pub work: &'static str,
    pub by: &'static str,
    pub median: Duration,
    /// Of the floor, and of the peer, on the same rows.
    pub floor: Duration,
    pub peer: Option<Duration>,
}

/// Measures all contenders on `rows` rows each.
pub fn measure(kind: Kind, v: usize, rows: usize) -> Vec<Measured> {
    eprintln!("{} rows, {v} tokens", kind.name());
    let mut entries = contenders(kind, v);
    let mut times = vec![Vec::with_capacity(rows); entries.len()];
    for turn in 0..TURNS {
        let numbers = rows * turn / TURNS..rows * (turn + 1) / TURNS;
        let fresh: Vec<Vec<f32>> = numbers.map(|number| kind.row(v, number)).collect();
        for (entry, times) in entries.iter_mut().zip(&mut times) {
            for row in &fresh {
                entry.contender.prepare(black_box(row));
                let start = Instant::now();
                let token = black_box(entry.contender.choose());
                times.push(start.elapsed());
                check(entry, row, token);
            }
        }
    }
    let medians: Vec<Duration> = times.into_iter().map(median).collect();
    let of = |by: &str, work: &str| {
        entries.iter().zip(&medians).find(|(entry, _)| entry.by == by && entry.work == work).map(|(_, &median)| median)
    };
    let measured = entries.iter().zip(&medians).map(|(entry, &median)| Measured {
        kind,
        v,
        work: entry.work,
        by: entry.by,
        median,
        floor: of("floor", entry.floor).unwrap_or(median),
        peer: entry.peer.and_then(|work| of("candle", work)),
    });
    measured.collect()
}

/// No choice is below the last logit that it may be, and a floor is the maximum.
fn check(entry: &Entry, row: &[f32], token: usize) {
    if entry.among == row.len() {
        return;
    }
    if entry.by == "floor" {
        assert_eq!(f32::from_bits(token as u32), row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        return;
    }
    let above = row.iter().filter(|&&x| x > row[token]).count();
    assert!(above < entry.among, "{} {}: token {token} is number {above}", entry.by, entry.work);
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
