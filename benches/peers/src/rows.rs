//! Rows of logits, reproducible and all different.

use std::f64::consts::TAU;

/// What a row is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Normal logits times 4.
    Normal,
    /// A language model's: most of the probability on some thirty tokens.
    Peaked,
    /// One token far above all others, which are equal.
    Spike,
    /// All equal.
    Equal,
    /// Every other token -inf.
    Masked,
    /// Each logit above the one before.
    Ascending,
    /// Nine different values.
    Ties,
}

impl Kind {
    /// Rows that a selection may find hard.
    pub const WORST: [Kind; 5] = [Kind::Spike, Kind::Equal, Kind::Masked, Kind::Ascending, Kind::Ties];

    /// In tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Normal => "normal",
            Kind::Peaked => "peaked",
            Kind::Spike => "spike",
            Kind::Equal => "all equal",
            Kind::Masked => "half masked",
            Kind::Ascending => "ascending",
            Kind::Ties => "many ties",
        }
    }

    /// Row `number` of `v` logits.
    pub fn row(self, v: usize, number: usize) -> Vec<f32> {
        let mut random = Random((number as u64) << 32 | v as u64);
        let mut normal = || random.normal() as f32;
        match self {
            Kind::Normal => (0..v).map(|_| 4.0 * normal()).collect(),
            Kind::Peaked => {
                let mut row: Vec<f32> = (0..v).map(|_| normal()).collect();
                for i in 0..30 {
                    row[(i * 7919 + number * 31) % v] = 13.0 + 2.0 * normal();
                }
                row
            }
            Kind::Spike => {
                let mut row = vec![normal(); v];
                row[(number * 7919 + 17) % v] = 20.0;
                row
            }
            Kind::Equal => vec![normal(); v],
            Kind::Masked => (0..v).map(|i| if (i + number) % 2 == 0 { f32::NEG_INFINITY } else { 4.0 * normal() }).collect(),
            Kind::Ascending => {
                let mut row: Vec<f32> = (0..v).map(|_| 4.0 * normal()).collect();
                row.sort_unstable_by(f32::total_cmp);
                row
            }
            Kind::Ties => (0..v).map(|_| (1.5 * normal()).round().clamp(-4.0, 4.0)).collect(),
        }
    }
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    /// In (0, 1], 53 bits.
    pub fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (((z ^ (z >> 31)) >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Of a normal distribution, by the method of Box and Muller.
    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (TAU * self.unit()).cos()
    }
}
