//! The end of a loop that is made of single operations.

/// Whether all rows of a batch are finished, so that a loop over [`TopKSampling`](crate::ops::TopKSampling) or
/// [`TopPSampling`](crate::ops::TopPSampling) ends: no byte of their `finished` is 0. A batch without rows is finished.
///
/// [`Decoding`](super::Decoding) asks by itself. Document 003, section 4.9, whose text has the two values the other way round.
///
/// ```
/// use tilekern::llama::check_finished;
///
/// assert!(!check_finished(&[1, 0, 1]));
/// assert!(check_finished(&[1, 1, 1]) && check_finished(&[]));
/// ```
pub fn check_finished(finished: &[u8]) -> bool {
    !finished.contains(&0)
}
