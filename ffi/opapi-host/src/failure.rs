//! Why a call was refused: the code that it returns, and the sentence for `aclGetRecentErrMsg`.

use tilekern_acl::codes;

/// A code and a sentence.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub code: i32,
    pub message: String,
}

impl Failure {
    pub fn new(code: i32, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }

    /// A pointer is null that aclnn needs.
    pub fn null(argument: &str) -> Failure {
        Failure::new(codes::ACLNN_ERR_PARAM_NULLPTR, format!("{argument} is null"))
    }

    /// A parameter of aclnn is wrong.
    pub fn invalid(message: impl Into<String>) -> Failure {
        Failure::new(codes::ACLNN_ERR_PARAM_INVALID, message)
    }

    /// A parameter of the runtime is wrong.
    pub fn parameter(message: impl Into<String>) -> Failure {
        Failure::new(codes::ACL_ERROR_RT_PARAM_INVALID, message)
    }
}

impl From<tilekern::Error> for Failure {
    /// The host's statuses are aclnn's; those that are its own are failures inside an operator.
    fn from(error: tilekern::Error) -> Failure {
        let code = error.status().code();
        Failure::new(if code > 0 { code } else { codes::ACLNN_ERR_INNER }, error.to_string())
    }
}
