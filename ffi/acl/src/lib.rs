//! ACL and aclnn types, the table of function pointers and its loader.
