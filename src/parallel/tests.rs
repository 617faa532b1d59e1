//! Two threads at once over everything that hands out parts: what an interpreter looks through for overlaps.

use super::*;
use crate::scratch::PerWorker;
use crate::tensor::TensorMut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::vec::Vec;
use tilekern_kernels::tiles::Bands;

/// Two threads, each of which takes whichever task is next.
struct Two;

// SAFETY: the counter gives each index once, each thread is one worker, and the scope waits for both.
unsafe impl ParallelFor for Two {
    fn workers(&self) -> usize {
        2
    }
    fn run(&self, tasks: usize, task: &(dyn Fn(usize, usize) + Sync)) {
        let next = &AtomicUsize::new(0);
        let work = |worker| {
            while let index = next.fetch_add(1, Ordering::Relaxed)
                && index < tasks
            {
                task(index, worker);
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| work(1));
            work(0);
        });
    }
}

/// Ten for a row, one for a column.
fn expected(rows: usize, columns: usize) -> Vec<i32> {
    (0..rows * columns).map(|i| (i / columns * 10 + i % columns) as i32).collect()
}

/// The same into a block.
fn number(block: &mut Block<'_, i32>) {
    for row in block.rows.clone() {
        let columns = block.columns.clone();
        let mut to = block.row(row);
        columns.enumerate().for_each(|(i, column)| to.set(i, (row * 10 + column) as i32));
    }
}

/// A pool of no threads.
#[derive(Debug)]
struct Nobody;

// SAFETY: it runs nothing, and `Host` does not take it.
unsafe impl ParallelFor for Nobody {
    fn workers(&self) -> usize {
        0
    }
    fn run(&self, _: usize, _: &(dyn Fn(usize, usize) + Sync)) {}
}

#[test]
fn a_pool_without_a_worker_is_refused() {
    let error = crate::Host::with(crate::Isa::Portable, Nobody).unwrap_err();
    assert_eq!((error.argument(), error.status()), ("pool", crate::Status::Invalid));
    // What an error shows of a shape ends with the shape, whatever its rank says.
    assert_eq!(std::format!("{}", crate::Value::Shape { rank: 9, sizes: [1; 5] }), "[1,1,1,1,1]");
}

#[test]
fn every_row_and_worker_has_its_own_part() {
    let (mut out, mut sums, mut count, mut each) = ([-1; 7 * 4], [0; 7], [0_u64; 2], [0_i32; 7]);
    // Rows four apart, of three.
    let matrix = TensorMut::strided([7, 3], [4, 1], &mut out).unwrap();
    let column = TensorMut::new([7], &mut sums).unwrap();
    let (counts, own) = (PerWorker::over(&mut count, 1), ByRow(PerWorker::over(&mut each, 1)));
    let parts = (matrix, Column(&column), counts, own, None::<ByRow<'_, i32>>);
    rows(&Two, 7, 2, parts, |row, (mut to, sum, count, own, none)| {
        (0..3).for_each(|i| to.set(i, (row * 10 + i) as i32));
        *sum = 30 * row as i32 + 3;
        count[0] += 1;
        own[0] = row as i32;
        assert!(none.is_none());
    });
    for row in 0..7 {
        assert_eq!(out[4 * row..][..4], [10 * row as i32, 10 * row as i32 + 1, 10 * row as i32 + 2, -1]);
        assert_eq!((sums[row], each[row]), (30 * row as i32 + 3, row as i32));
    }
    assert_eq!(count.iter().sum::<u64>(), 7);
}

#[test]
fn every_band_has_the_parts_of_its_rows() {
    let (mut all, bands) = ([-1_i32; 19 * 2], Bands::of(19));
    let parts = ByBand(PerWorker::over(&mut all, 2), bands);
    rows(&Two, bands.count(), 1, parts, |band, part| {
        assert_eq!(part.len(), 2 * bands.rows(band).len());
        part.fill(band as i32);
    });
    for (row, part) in all.chunks_exact(2).enumerate() {
        let band = (0..bands.count()).find(|&band| bands.rows(band).contains(&row)).unwrap() as i32;
        assert_eq!(part, [band; 2]);
    }
}

#[test]
fn blocks_cover_a_matrix() {
    let (mut out, mut scratch) = ([-1; 5 * 7], [0_u64; 2]);
    let matrix = TensorMut::new([5, 7], &mut out).unwrap();
    let own = PerWorker::over(&mut scratch, 1);
    blocks(&Two, Cut { rows: 2, columns: 3 }, &matrix, &own, |mut block, own| {
        number(&mut block);
        own[0] += 1;
    });
    assert_eq!(out[..], expected(5, 7));
    assert_eq!(scratch.iter().sum::<u64>(), 9);
}

#[test]
fn strips_cover_some_rows_of_each_matrix() {
    let (mut out, mut second, mut counts) = ([-1; 4 * 7], [-1; 4 * 3], [0_u64; 2]);
    let (matrix, other) = (TensorMut::new([4, 7], &mut out).unwrap(), TensorMut::new([4, 3], &mut second).unwrap());
    let own = PerWorker::over(&mut counts, 1);
    strips(&Two, 1..4, &[(&matrix, 2), (&other, 3)], &own, |i, mut block, own| {
        assert_eq!(i, usize::from(block.columns == (0..3)));
        number(&mut block);
        own[0] += 1;
    });
    assert_eq!((&out[..7], &out[7..]), (&[-1; 7][..], &expected(4, 7)[7..]));
    assert_eq!((&second[..3], &second[3..]), (&[-1; 3][..], &expected(4, 3)[3..]));
    assert_eq!(counts.iter().sum::<u64>(), 5);
}

#[test]
fn tiles_cover_segments() {
    let (mut out, mut seen) = ([-1; 6 * 5], [0_i32; 2]);
    let matrix = TensorMut::new([6, 5], &mut out).unwrap();
    let own = PerWorker::over(&mut seen, 1);
    // A segment of one row takes two columns at a time, others three; row 3 is in none.
    let segments = [[7, 0, 1], [8, 1, 3], [9, 4, 6]];
    tiles(
        &Two,
        &segments,
        |rows| if rows == 1 { 2 } else { 3 },
        &matrix,
        &own,
        |key, mut block, own| {
            for row in block.rows.clone() {
                let mut to = block.row(row);
                (0..to.len()).for_each(|i| to.set(i, key as i32));
            }
            own[0] += 1;
        },
    );
    let keys: Vec<i32> = [7, 8, 8, -1, 9, 9].into_iter().flat_map(|key| [key; 5]).collect();
    assert_eq!(out[..], keys);
    assert_eq!(seen.iter().sum::<i32>(), 3 + 2 + 2);
}

#[test]
fn columns_of_one_row_are_parts() {
    let mut out = [-1; 3 * 8];
    let matrix = TensorMut::new([3, 8], &mut out).unwrap();
    rows(&Two, 3, 1, From(&Columns { matrix: &matrix, row: 1, columns: 2 }, 1), |index, mut part| {
        (0..part.len()).for_each(|i| part.set(i, index as i32));
    });
    assert_eq!(out[8..16], [-1, -1, 0, 0, 1, 1, 2, 2]);
    assert_eq!((&out[..8], &out[16..]), (&[-1; 8][..], &[-1; 8][..]));
}
