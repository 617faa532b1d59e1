//! The aclnn and ACL symbols implemented on the host.
