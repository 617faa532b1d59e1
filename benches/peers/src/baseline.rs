//! Top-p as it is written first: sort all tokens, sum, cut, draw.

use crate::contenders::Contender;
use crate::rows::Random;

pub struct Sorting {
    p: f64,
    row: Vec<f32>,
    order: Vec<u32>,
    random: Random,
}

impl Sorting {
    pub fn new(v: usize, p: f64) -> Sorting {
        Sorting { p, row: vec![0.0; v], order: vec![0; v], random: Random(3) }
    }
}

impl Contender for Sorting {
    fn prepare(&mut self, row: &[f32]) {
        self.row.copy_from_slice(row);
    }

    fn choose(&mut self) -> usize {
        for (i, at) in self.order.iter_mut().enumerate() {
            *at = i as u32;
        }
        let row = &self.row;
        self.order.sort_unstable_by(|&a, &b| row[b as usize].total_cmp(&row[a as usize]));
        let max = row[self.order[0] as usize];
        let weight = |i: u32| f64::from((row[i as usize] - max).exp());
        let sum: f64 = self.order.iter().map(|&i| weight(i)).sum();
        let (mut kept, mut n) = (0.0, 0);
        while n < self.order.len() && kept < self.p * sum {
            kept += weight(self.order[n]);
            n += 1;
        }
        let mut rest = self.random.unit() * kept;
        let drawn = self.order[..n].iter().find(|&&i| {
            rest -= weight(i);
            rest <= 0.0
        });
        *drawn.unwrap_or(&self.order[n - 1]) as usize
    }
}
