//! What a call is refused for, with which status; and that nothing is written then.

use crate::common::{Random, refused, shape_only, shape_only_mut};
use core::alloc::Layout;
use tilekern::ops::{Noise, PostSample, TopKTopPSample};
use tilekern::{Dims, Host, Run, Scratch, Tensor, TensorMut};

type Call = TopKTopPSample<'static, Host, f32>;

/// Shapes alone: 3 rows of 5 that ask for everything.
fn shapes() -> Call {
    let mut call = Call::new(shape_only(&[3, 5]), shape_only(&[3]), shape_only(&[3]), shape_only_mut(&[3]));
    call.q = Some(Noise::Exponential(shape_only(&[3, 5])));
    call.min_ps = Some(shape_only(&[3]));
    call.is_need_logits = true;
    call.logits_top_kp_select = Some(shape_only_mut(&[3, 5]));
    call.row_status = Some(shape_only_mut(&[3]));
    call.logits_idx = Some(shape_only_mut(&[3, 5]));
    call.logits_sort_masked = Some(shape_only_mut(&[3, 5]));
    call.generator = Some(shape_only(&[2]));
    call
}

/// The query's answer to a changed call.
fn query(change: impl FnOnce(&mut Call)) -> Result<(), (i32, &'static str)> {
    let mut call = shapes();
    change(&mut call);
    Host::new().workspace(&call).map(|_| ()).map_err(|e| (e.status().code(), e.argument()))
}

#[test]
fn shapes_that_fit() {
    assert_eq!(query(|_| ()), Ok(()));
    // `[B,1]` for every `[B]`.
    let columns = |call: &mut Call| {
        call.top_k = shape_only(&[3, 1]);
        call.top_p = shape_only(&[3, 1]);
        call.min_ps = Some(shape_only(&[3, 1]));
        call.logits_select_idx = Some(shape_only_mut(&[3, 1]));
        call.row_status = Some(shape_only_mut(&[3, 1]));
    };
    assert_eq!(query(columns), Ok(()));
    let seeds = |lines| {
        query(|call| {
            call.post_sample = PostSample::MultiNomial;
            call.q = Some(Noise::Seeds(shape_only(&[lines, 2])));
        })
    };
    assert_eq!((seeds(1), seeds(3), seeds(9)), (Ok(()), Ok(()), Ok(())));
    // No post-sampling looks at no q.
    let ignored = |call: &mut Call| {
        call.post_sample = PostSample::None;
        call.q = Some(Noise::Exponential(shape_only(&[7])));
    };
    assert_eq!(query(ignored), Ok(()));
    // Without is_need_logits nobody looks at the filtered copy.
    let unasked = |call: &mut Call| {
        call.is_need_logits = false;
        call.logits_top_kp_select = Some(shape_only_mut(&[7]));
    };
    assert_eq!(query(unasked), Ok(()));
    assert_eq!(query(|call| call.logits_select_idx = None), Ok(()));
    assert_eq!(query(|call| (call.eps, call.ks_max, call.top_k_guess) = (0.0, -5, -1)), Ok(()));
}

#[test]
fn shapes_that_do_not_fit() {
    let invalid = |argument| Err((161002, argument));
    for shape in [&[0, 5][..], &[3, 0], &[15], &[1, 3, 5]] {
        assert_eq!(query(|call| call.logits = shape_only(shape)), invalid("logits"), "{shape:?}");
    }
    for shape in [&[2][..], &[4], &[1, 3], &[3, 2], &[]] {
        assert_eq!(query(|call| call.top_k = shape_only(shape)), invalid("top_k"));
        assert_eq!(query(|call| call.top_p = shape_only(shape)), invalid("top_p"));
        assert_eq!(query(|call| call.min_ps = Some(shape_only(shape))), invalid("min_ps"));
        assert_eq!(query(|call| call.logits_select_idx = Some(shape_only_mut(shape))), invalid("logits_select_idx"));
        assert_eq!(query(|call| call.row_status = Some(shape_only_mut(shape))), invalid("row_status"));
    }
    for shape in [&[5, 3][..], &[3, 4], &[15], &[3, 5, 1]] {
        assert_eq!(query(|call| call.q = Some(Noise::Exponential(shape_only(shape)))), Err((561002, "q")));
        assert_eq!(query(|call| call.logits_top_kp_select = Some(shape_only_mut(shape))), invalid("logits_top_kp_select"));
        assert_eq!(query(|call| call.logits_idx = Some(shape_only_mut(shape))), invalid("logits_idx"));
        assert_eq!(query(|call| call.logits_sort_masked = Some(shape_only_mut(shape))), invalid("logits_sort_masked"));
    }
    // A tensor that is missing comes first, the size of q last.
    let q = || Some(Noise::Exponential(shape_only(&[3, 4])));
    assert_eq!(query(|call| (call.q, call.min_ps) = (q(), Some(shape_only(&[2])))), invalid("min_ps"));
    let unplaced = |call: &mut Call| (call.q, call.is_need_logits, call.logits_top_kp_select) = (q(), true, None);
    assert_eq!(query(unplaced), Err((161001, "logits_top_kp_select")));
    for shape in [&[0, 2][..], &[3, 1], &[3, 3], &[2], &[3, 0]] {
        let seeds = |call: &mut Call| {
            call.post_sample = PostSample::MultiNomial;
            call.q = Some(Noise::Seeds(shape_only(shape)));
        };
        assert_eq!(query(seeds), invalid("q"), "{shape:?}");
    }
    // The generator is validated though q wins, and though nothing is drawn.
    for shape in [&[1][..], &[3], &[1, 2], &[]] {
        for post_sample in [PostSample::None, PostSample::QSample] {
            let generator = |call: &mut Call| {
                call.generator = Some(shape_only(shape));
                call.post_sample = post_sample;
            };
            assert_eq!(query(generator), invalid("generator"));
        }
    }
}

#[test]
fn noise_of_the_other_kind() {
    assert_eq!(query(|call| call.q = Some(Noise::Seeds(shape_only(&[3, 2])))), Err((161002, "q")));
    assert_eq!(query(|call| call.post_sample = PostSample::MultiNomial), Err((161002, "q")));
}

#[test]
fn attributes() {
    for eps in [-1e-30, f64::NAN, f64::NEG_INFINITY, f64::INFINITY, 3.5e38] {
        assert_eq!(query(|call| call.eps = eps), Err((161002, "eps")));
    }
}

#[test]
fn vocabularies_end_at_2_to_the_20() {
    let of = |v| {
        let call = Call::new(shape_only(&[1, v]), shape_only(&[1]), shape_only(&[1]), shape_only_mut(&[1]));
        Host::new().workspace(&call).map(|_| ()).map_err(|e| (e.status().code(), e.argument()))
    };
    assert_eq!((of(1 << 20), of((1 << 20) + 1)), (Ok(()), Err((561002, "logits"))));
}

#[test]
fn outputs_that_are_missing() {
    let missing = |argument| Err((161001, argument));
    assert_eq!(query(|call| call.logits_idx = None), missing("logits_idx"));
    assert_eq!(query(|call| call.logits_sort_masked = None), missing("logits_sort_masked"));
    assert_eq!(query(|call| call.logits_top_kp_select = None), missing("logits_top_kp_select"));
    let nothing = |call: &mut Call| (call.logits_idx, call.logits_sort_masked, call.logits_select_idx) = (None, None, None);
    assert_eq!(query(nothing), missing("logits_select_idx"));
}

/// A call on two rows of four whose outputs must stay as they are: refused once one thing was changed.
fn untouched(expected: (i32, &'static str), change: impl for<'a> FnOnce(&mut TopKTopPSample<'a, Host, f32>)) {
    let (logits, top_k, top_p) = ([0.5f32; 8], [2; 2], [0.5f32; 2]);
    let (mut chosen, mut select, mut status) = ([-9i64; 2], [-9.0f32; 8], [9u8; 2]);
    let mut call = TopKTopPSample::new(
        Tensor::new([2, 4], &logits).unwrap(),
        Tensor::new([2], &top_k).unwrap(),
        Tensor::new([2], &top_p).unwrap(),
        TensorMut::new([2], &mut chosen).unwrap(),
    );
    call.is_need_logits = true;
    call.logits_top_kp_select = Some(TensorMut::new([2, 4], &mut select).unwrap());
    call.row_status = Some(TensorMut::new([2], &mut status).unwrap());
    change(&mut call);
    assert_eq!(refused(&Host::new(), call), expected);
    assert_eq!((chosen, select, status), ([-9; 2], [-9.0; 8], [9; 2]));
}

#[test]
fn a_run_needs_data_and_writes_nothing_without() {
    untouched((161001, "logits"), |call| call.logits = shape_only(&[2, 4]));
    untouched((161001, "top_k"), |call| call.top_k = shape_only(&[2]));
    untouched((161001, "min_ps"), |call| call.min_ps = Some(shape_only(&[2])));
    untouched((161001, "q"), |call| call.q = Some(Noise::Exponential(shape_only(&[2, 4]))));
    untouched((161001, "generator"), |call| call.generator = Some(shape_only(&[2])));
    untouched((161001, "logits_select_idx"), |call| call.logits_select_idx = Some(shape_only_mut(&[2])));
    untouched((161002, "eps"), |call| call.eps = -1.0);
    untouched((561002, "q"), |call| call.q = Some(Noise::Exponential(shape_only(&[2, 3]))));
}

#[test]
fn overlapping_outputs_are_refused() {
    let mut memory = [0.5f32; 16];
    let at = memory.as_mut_ptr();
    let (top_k, top_p, mut chosen) = ([2; 2], [0.5f32; 2], [-9i64; 2]);
    let dims = Dims::contiguous(&[2, 4]).unwrap();
    for (offset, strides, argument) in
        [(0, [4, 1], "logits_top_kp_select"), (4, [4, 1], "logits_top_kp_select"), (8, [2, 1], "logits_top_kp_select")]
    {
        // SAFETY: both tensors lie inside `memory`; the call is refused before it touches them.
        let (logits, select) = unsafe {
            let strided = Dims::strided(&[2, 4], &strides).unwrap();
            (Tensor::from_raw(dims, at), TensorMut::from_raw(strided, at.add(offset)))
        };
        let mut call = TopKTopPSample::<Host, f32>::new(
            logits,
            Tensor::new([2], &top_k).unwrap(),
            Tensor::new([2], &top_p).unwrap(),
            TensorMut::new([2], &mut chosen).unwrap(),
        );
        call.is_need_logits = true;
        call.logits_top_kp_select = Some(select);
        assert_eq!(refused(&Host::new(), call), (161002, argument));
    }
    assert_eq!((memory, chosen), ([0.5; 16], [-9; 2]));
}

/// Every tensor somewhere in one buffer: the call runs exactly if no byte of an output is another tensor's and every address suits
/// its dtype, wherever the others lie.
#[test]
fn anywhere_in_one_buffer() {
    const BYTES: usize = 1024;
    #[repr(align(64))]
    struct Buffer([u8; BYTES]);
    let mut random = Random(7);
    let (host, mut scratch) = (Host::new(), Scratch::new(Layout::from_size_align(1 << 20, 64).unwrap()));
    let mut seen = [0; 2];
    for _ in 0..5000 {
        let mut buffer = Buffer([0x3e; BYTES]);
        // logits, top_k, top_p, q, min_ps, then the outputs: chosen, filtered, status. Bytes and alignment of each.
        let sizes = [(40, 4), (8, 4), (8, 4), (40, 4), (8, 4), (16, 8), (40, 4), (2, 1)];
        let places = sizes.map(|(bytes, align)| {
            let place = random.below((BYTES - bytes) / align) * align;
            place + usize::from(random.below(100) == 0)
        });
        let (mut owner, mut fits) = ([None; BYTES], true);
        for (i, (&place, (bytes, align))) in places.iter().zip(sizes).enumerate() {
            fits &= place % align == 0;
            for byte in &mut owner[place..place + bytes] {
                fits &= byte.is_none_or(|other: usize| other < 5 && i < 5);
                *byte = Some(i);
            }
        }
        let first = buffer.0.as_mut_ptr();
        let at = |i: usize| first.wrapping_add(places[i]);
        let (matrix, column) = (Dims::contiguous(&[2, 5]).unwrap(), Dims::contiguous(&[2]).unwrap());
        // SAFETY: all lie inside the buffer, which nothing else touches meanwhile.
        let mut call = unsafe {
            let mut call = TopKTopPSample::<Host, f32>::new(
                Tensor::from_raw(matrix, at(0).cast()),
                Tensor::from_raw(column, at(1).cast()),
                Tensor::from_raw(column, at(2).cast()),
                TensorMut::from_raw(column, at(5).cast()),
            );
            call.q = Some(Noise::Exponential(Tensor::from_raw(matrix, at(3).cast())));
            call.min_ps = Some(Tensor::from_raw(column, at(4).cast()));
            call.logits_top_kp_select = Some(TensorMut::from_raw(matrix, at(6).cast()));
            call.row_status = Some(TensorMut::from_raw(column, at(7)));
            call
        };
        call.is_need_logits = true;
        let answer = host.run_mut(&mut call, &mut scratch).map_err(|e| e.status().code());
        assert_eq!(answer, if fits { Ok(()) } else { Err(161002) }, "{places:?}");
        assert!(fits || buffer.0 == [0x3e; BYTES], "{places:?}");
        seen[usize::from(fits)] += 1;
    }
    assert!(seen.iter().all(|&n| n > 500), "{seen:?}");
}

#[test]
fn too_small_a_workspace() {
    let (logits, top_k, top_p, mut chosen) = ([0.5f32; 8], [2; 2], [0.5f32; 2], [-9i64; 2]);
    let call = TopKTopPSample::<Host, f32>::new(
        Tensor::new([2, 4], &logits).unwrap(),
        Tensor::new([2], &top_k).unwrap(),
        Tensor::new([2], &top_p).unwrap(),
        TensorMut::new([2], &mut chosen).unwrap(),
    );
    let error = Host::new().run(call, &mut []).unwrap_err();
    assert_eq!((error.status().code(), chosen), (-1, [-9; 2]));
}
