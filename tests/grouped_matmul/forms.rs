//! The forms of a weight: the random calls take them in turn.

use crate::case::{Case, Layouts};
use crate::layouts::{halves, pack, stripes};
use tilekern::ops::*;
use tilekern::{Host, ParallelFor, Tensor};

/// How the weight of a call lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    Plain,
    Blocks,
    Packed,
}

impl Form {
    /// Of a call by its number; blocks, of so many columns, only where the shape has whole ones.
    pub fn of(number: usize, case: &Case, columns: usize) -> Form {
        match number % 3 {
            0 => Form::Plain,
            1 if case.k % 16 == 0 && case.n % columns == 0 => Form::Blocks,
            _ => Form::Packed,
        }
    }

    /// The weight of eight bits in this form.
    pub fn of_bytes(self, case: &Case) -> Layouts {
        let [e, k, n] = [case.e, case.k, case.n];
        match self {
            Form::Plain => Layouts::default(),
            Form::Blocks => Layouts { nz: stripes(case, 32), ..Layouts::default() },
            Form::Packed => {
                let packed = pack(UnpackedWeight::I8(Tensor::new([e, k, n], &case.w).unwrap()), [e, k, n]);
                Layouts { packed, ..Layouts::default() }
            }
        }
    }

    /// The weight of four bits in this form.
    pub fn of_halves(self, case: &Case) -> Layouts {
        let [e, k, n] = [case.e, case.k, case.n];
        match self {
            Form::Plain => Layouts { halves: halves(&case.w), ..Layouts::default() },
            Form::Blocks => Layouts { halves: halves(&stripes(case, 64)), ..Layouts::default() },
            Form::Packed => {
                let plain = halves(&case.w);
                let packed = pack(UnpackedWeight::I4(Tensor::new([e, k, n / 2], &plain).unwrap()), [e, k, n]);
                Layouts { packed, ..Layouts::default() }
            }
        }
    }

    /// Gives a call on a plain weight this form.
    pub fn set<'a, P: ParallelFor>(self, call: &mut GroupedMatmulSwigluQuant<'a, Host<P>>, layouts: &'a Layouts, case: &Case) {
        let [e, k, n] = [case.e, case.k, case.n];
        let halves = &layouts.halves;
        let four = !halves.is_empty();
        match self {
            Form::Plain if four => call.weight = GroupedWeight::I4(Tensor::new([e, k, n / 2], halves).unwrap()),
            Form::Plain => {}
            Form::Blocks => {
                call.weight = match four {
                    true => GroupedWeight::I4(Tensor::new([e, n / 64, k / 16, 16, 32], halves).unwrap()),
                    false => GroupedWeight::I8(Tensor::new([e, n / 32, k / 16, 16, 32], &layouts.nz).unwrap()),
                };
                call.weight_format = FORMAT_NZ;
            }
            Form::Packed => {
                call.weight = GroupedWeight::I8(Tensor::new([layouts.packed.len()], &layouts.packed).unwrap());
                call.weight_format = FORMAT_PACKED;
            }
        }
    }
}
