//! Noise of the first ranks, which decides how much of a list is looked at.

/// Gives the first ranks the noises of their neighbours, for another row.
pub fn turn(q: &mut [f32]) {
    let ranks = q.len().min(2048);
    q[..ranks].rotate_left(97 % ranks);
}
