//! The operators: what each refuses beyond the host's own checks, and the host's call.

pub(crate) mod apply;
pub(crate) mod gather;
pub(crate) mod grouped;
pub(crate) mod random;
pub(crate) mod sample;
mod weight;

use tilekern_acl::{ACL_BF16, ACL_FLOAT, ACL_FLOAT16, aclDataType};

/// What logits, probabilities and scales may be.
const FLOATS: [aclDataType; 3] = [ACL_FLOAT, ACL_FLOAT16, ACL_BF16];

/// `self.method::<T>(..)` for the dtype of an operand, or what it answers for another dtype.
macro_rules! per_float {
    ($operand:expr, $self:ident.$method:ident($($argument:expr),*)) => {{
        let operand = $operand;
        operand.dtype(&$crate::operators::FLOATS)?;
        match operand.spec.dtype {
            tilekern_acl::ACL_FLOAT16 => $self.$method::<tilekern::f16>($($argument),*),
            tilekern_acl::ACL_BF16 => $self.$method::<tilekern::bf16>($($argument),*),
            _ => $self.$method::<f32>($($argument),*),
        }
    }};
}
use per_float;
