//! SwiGLU of two rows, quantised: `y = a / (1 + exp(-a)) * b`.
//!
//! The row is computed once into a stage, which the quantiser then reads twice: an exponential costs more than a load.

use super::{Quantiser, Span, add_bias, dequant_span, vectors};
use crate::dispatch::{Kernel, compiled_here};
use crate::element::Element;
use crate::math::exp;
use crate::per_element::per_element;
use crate::simd::{Dot, Simd};

/// `(a / (1 + exp(-a))) * b`
#[inline(always)]
pub fn swiglu<S: Simd>(s: S, a: S::F32, b: S::F32) -> S::F32 {
    let e = exp(s, s.sub(s.splat(0.0), a));
    s.mul(s.div(a, s.add(s.splat(1.0), e)), b)
}

/// [`swiglu`] of the numbers that `values` gives, into `stage`, which is then quantised into `output`; returns scale and offset.
#[inline(always)]
fn swiglu_quant<S: Simd>(
    s: S,
    quantiser: Quantiser,
    values: impl Fn(Span) -> [S::F32; 2],
    stage: &mut [f32],
    output: &mut [i8],
) -> [f32; 2] {
    vectors(
        stage.len(),
        #[inline(always)]
        |span| {
            let [a, b] = values(span);
            span.store(s, swiglu(s, a, b), stage);
        },
    );
    quantiser.quantize(s, stage, output)
}

/// `output = quantised swiglu(w1 * input_scale * w1_scale, w3 * input_scale * w3_scale)`; returns the scale.
pub struct DequantSwigluQuant<'a> {
    /// The sums of the gate.
    pub w1: &'a [i32],
    /// As long as `w1`.
    pub w3: &'a [i32],
    /// The scale of the row.
    pub input_scale: f32,
    /// The scales of the gate's columns.
    pub w1_scale: &'a [f32],
    /// The scales of the other columns.
    pub w3_scale: &'a [f32],
    /// As long as `w1`; overwritten.
    pub stage: &'a mut [f32],
    /// As long as `w1`.
    pub output: &'a mut [i8],
}

impl Kernel for DequantSwigluQuant<'_> {
    type Output = f32;
    const DOT: bool = false;
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> f32 {
        let [scale, _] = swiglu_quant(
            s,
            Quantiser::Reciprocal,
            #[inline(always)]
            |span| {
                let a = dequant_span(s, span, self.w1, self.input_scale, self.w1_scale);
                [a, dequant_span(s, span, self.w3, self.input_scale, self.w3_scale)]
            },
            &mut self.stage[..self.w1.len()],
            self.output,
        );
        scale
    }
}

/// What turns the sums of a row of a grouped product into numbers.
#[derive(Clone, Copy)]
pub struct GroupScale<'a, T> {
    /// The scale of the row.
    pub row: f32,
    /// The scales of the columns.
    pub column: &'a [T],
    /// Whether the scale of the column is multiplied first.
    pub column_first: bool,
    /// Added to the sums.
    pub integers: Option<&'a [i32]>,
    /// Added after the scales.
    pub floats: Option<&'a [f32]>,
    /// Added last.
    pub offset: Option<&'a [f32]>,
}

impl<T: Element> GroupScale<'_, T> {
    #[inline(always)]
    fn apply<S: Simd>(&self, s: S, span: Span, sums: &[i32]) -> S::F32 {
        let sum = span.load_i32(s, sums);
        let mut value = match self.integers {
            Some(bias) => add_bias(s, sum, span.load_i32(s, bias)),
            None => s.to_f32(sum),
        };
        let (row, column) = (s.splat(self.row), span.load(s, self.column, T::default()));
        value = match self.column_first {
            true => s.mul(s.mul(value, column), row),
            false => s.mul(s.mul(value, row), column),
        };
        if let Some(bias) = self.floats {
            value = s.add(value, span.load(s, bias, 0.0));
        }
        match self.offset {
            Some(offset) => s.add(value, span.load(s, offset, 0.0)),
            None => value,
        }
    }
}

/// `output = quantised swiglu(first half, second half)` of a row of scaled sums; returns scale and offset.
pub struct GroupSwigluQuant<'a, T> {
    /// The sums of the row.
    pub sums: &'a [i32],
    /// What they are scaled by.
    pub scale: GroupScale<'a, T>,
    /// How the row becomes bytes.
    pub quantiser: Quantiser,
    /// Half as long as the sums; overwritten.
    pub stage: &'a mut [f32],
    /// Half as long as the sums.
    pub output: &'a mut [i8],
}

impl<T: Element> Kernel for GroupSwigluQuant<'_, T> {
    type Output = [f32; 2];
    const DOT: bool = false;
    per_element!(run_group_swiglu_quant);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> [f32; 2] {
        let half = self.sums.len() / 2;
        swiglu_quant(
            s,
            self.quantiser,
            #[inline(always)]
            |span| {
                let gate = span.moved(half);
                [self.scale.apply(s, span, self.sums), self.scale.apply(s, gate, self.sums)]
            },
            &mut self.stage[..half],
            self.output,
        )
    }
}

/// `output = quantised swiglu(first half, second half)` of a row of numbers; returns scale and offset.
pub struct SwigluQuant<'a> {
    /// The row.
    pub values: &'a [f32],
    /// How the row becomes bytes.
    pub quantiser: Quantiser,
    /// Half as long as the row; overwritten.
    pub stage: &'a mut [f32],
    /// Half as long as the row.
    pub output: &'a mut [i8],
}

impl Kernel for SwigluQuant<'_> {
    type Output = [f32; 2];
    const DOT: bool = false;
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> [f32; 2] {
        let half = self.values.len() / 2;
        swiglu_quant(
            s,
            self.quantiser,
            #[inline(always)]
            |span| {
                let gate = span.moved(half);
                [span.load(s, self.values, 0.0), gate.load(s, self.values, 0.0)]
            },
            &mut self.stage[..half],
            self.output,
        )
    }
}
