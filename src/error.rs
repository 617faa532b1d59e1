//! What a call answers when it cannot do what was asked: a status that aclnn would give, the argument, what was expected and what
//! was found. Nothing is written by a call that fails, but by an NPU in the midst of its work.

use core::fmt;

/// The status codes: aclnn's where it has one, negative where it has none.
///
/// ```
/// use tilekern::Status;
///
/// assert_eq!(Status::Invalid.code(), 161002);
/// assert_eq!(Status::Workspace.code(), -1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Status {
    /// A required pointer is null.
    Null = 161001,
    /// A dtype, rank, shape, stride or range is wrong.
    Invalid = 161002,
    /// A size that the operator's document excludes.
    Tiling = 561002,
    /// The workspace is too small or misaligned.
    Workspace = -1,
    /// Not on this processor, or not on this backend.
    Unsupported = -2,
    /// The backend is missing or failed.
    Backend = -3,
    /// A bug of this library, or of the caller's `parallel_for`: from the C functions alone, which make it of a panic.
    Internal = -4,
}

impl Status {
    /// The number that the C functions return.
    pub const fn code(self) -> i32 {
        self as i32
    }

    /// One short sentence.
    pub const fn text(self) -> &'static str {
        match self {
            Status::Null => "a required pointer is null",
            Status::Invalid => "a dtype, rank, shape, stride or range is wrong",
            Status::Tiling => "a size is outside what the operator supports",
            Status::Workspace => "the workspace is too small or misaligned",
            Status::Unsupported => "not supported on this processor or backend",
            Status::Backend => "the backend is missing or failed",
            Status::Internal => "internal error",
        }
    }
}

/// A value inside an [`Error`].
///
/// ```
/// use tilekern::Value;
///
/// assert_eq!(Value::Range { least: 0, most: 127 }.to_string(), "0 to 127");
/// assert_eq!(Value::shape(&[2, 3]).to_string(), "[2,3]");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A description.
    Text(&'static str),
    /// A number.
    Int(i64),
    /// A size or a count.
    Size(usize),
    /// The numbers that were possible, from the least to the most.
    Range {
        /// The first of them.
        least: i64,
        /// The last of them.
        most: i64,
    },
    /// What a function of ACL answered.
    Code {
        /// The number.
        code: i32,
        /// Its name in the headers.
        name: &'static str,
    },
    /// A floating-point attribute.
    Float(f64),
    /// An entry of a list of row groups.
    Group {
        /// Which entry.
        index: usize,
        /// What it says.
        value: i64,
        /// The end of the group before it.
        after: usize,
        /// The number of rows.
        rows: usize,
    },
    /// The first `rank` numbers are a shape.
    Shape {
        /// How many dimensions.
        rank: u8,
        /// Their sizes.
        sizes: [usize; crate::tensor::MAX_RANK],
    },
}

impl Value {
    /// A shape of at most five dimensions; more are cut off.
    pub fn shape(of: &[usize]) -> Value {
        let rank = of.len().min(crate::tensor::MAX_RANK);
        let mut sizes = [0; crate::tensor::MAX_RANK];
        sizes[..rank].copy_from_slice(&of[..rank]);
        Value::Shape { rank: rank as u8, sizes }
    }
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Value {
        Value::Text(text)
    }
}

impl From<usize> for Value {
    fn from(n: usize) -> Value {
        Value::Size(n)
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Value {
        Value::Int(n)
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Value {
        Value::Float(x)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.write_str(text),
            Value::Int(n) => write!(f, "{n}"),
            Value::Size(n) => write!(f, "{n}"),
            Value::Range { least, most } => write!(f, "{least} to {most}"),
            Value::Code { code, name } => write!(f, "{code} {name}"),
            // Zeros would leave a message of C no room.
            Value::Float(x) if x.is_finite() && *x != 0.0 && !(1e-4..1e16).contains(&x.abs()) => write!(f, "{x:e}"),
            Value::Float(x) => write!(f, "{x}"),
            Value::Group { index, value, after, rows } => {
                write!(f, "entry {index} of {value} after row {after} of {rows}")
            }
            Value::Shape { rank, sizes } => {
                f.write_str("[")?;
                for (i, n) in sizes.iter().take(usize::from(*rank)).enumerate() {
                    write!(f, "{}{n}", if i == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
        }
    }
}

/// Why a call was refused.
///
/// ```
/// use tilekern::{Host, Status, Tensor, TensorMut, ops::RmsNorm, Run};
///
/// let (x, g, mut y) = ([1.0f32; 4], [1.0f32; 3], [0.0f32; 4]);
/// let call = RmsNorm::new(Tensor::new([1, 4], &x)?, Tensor::new([3], &g)?, TensorMut::new([1, 4], &mut y)?);
/// let error = Host::new().workspace(&call).unwrap_err();
/// assert_eq!(error.status(), Status::Invalid);
/// assert_eq!(error.to_string(), "gamma: expected [4], found [3] (161002)");
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Error {
    status: Status,
    argument: &'static str,
    expected: Value,
    found: Value,
}

impl Error {
    /// An error about `argument`.
    #[cold]
    #[inline(never)]
    pub fn new(status: Status, argument: &'static str, expected: impl Into<Value>, found: impl Into<Value>) -> Error {
        Error { status, argument, expected: expected.into(), found: found.into() }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn invalid(argument: &'static str, expected: impl Into<Value>, found: impl Into<Value>) -> Error {
        Error::new(Status::Invalid, argument, expected, found)
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn null(argument: &'static str) -> Error {
        Error::new(Status::Null, argument, "a tensor with data", "null")
    }

    /// The status code.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The argument that is at fault, as the field of the operation is called.
    pub fn argument(&self) -> &'static str {
        self.argument
    }

    /// What the operation needs.
    pub fn expected(&self) -> Value {
        self.expected
    }

    /// What it got.
    pub fn found(&self) -> Value {
        self.found
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, found {} ({})", self.argument, self.expected, self.found, self.status.code())
    }
}

impl core::error::Error for Error {}
