//! What a query answers: the same whatever the strides, while there is room for it, and little for the longest of rows.

use tilekern::ops::{ApplyTopKTopP, Noise, TopKTopPSample, TopKTopPSampleV1};
use tilekern::{Dims, Error, Host, Run, Tensor, TensorMut};

const ROWS: usize = 2;

/// A matrix of `v` columns that lie `stride` apart.
fn lies(v: usize, stride: usize) -> Result<Dims, Error> {
    Dims::strided(&[ROWS, v], &[stride * v, stride])
}

fn vector<T>() -> Result<Tensor<'static, T>, Error> {
    Ok(Tensor::shape_only(Dims::contiguous(&[ROWS])?))
}

fn tokens() -> Result<TensorMut<'static, i64>, Error> {
    Ok(TensorMut::shape_only(Dims::contiguous(&[ROWS])?))
}

/// The bytes of the three operators that work on rows of logits, with all that they can be asked for.
fn sizes(v: usize, stride: usize) -> Result<[usize; 3], Error> {
    let (host, dims) = (Host::new(), lies(v, stride)?);
    let mut sample: TopKTopPSample<'_, Host, f32> =
        TopKTopPSample::new(Tensor::shape_only(dims), vector()?, vector()?, tokens()?);
    sample.q = Some(Noise::Exponential(Tensor::shape_only(dims)));
    sample.is_need_logits = true;
    sample.logits_top_kp_select = Some(TensorMut::shape_only(dims));
    (sample.logits_idx, sample.logits_sort_masked) = (Some(TensorMut::shape_only(dims)), Some(TensorMut::shape_only(dims)));
    let mut first: TopKTopPSampleV1<'_, Host, f32> =
        TopKTopPSampleV1::new(Tensor::shape_only(dims), vector()?, vector()?, tokens()?);
    first.q = Some(Tensor::shape_only(dims));
    first.is_need_logits = true;
    first.logits_top_kp_select = Some(TensorMut::shape_only(dims));
    let mut apply: ApplyTopKTopP<'_, Host, f32> = ApplyTopKTopP::new(Tensor::shape_only(dims), TensorMut::shape_only(dims));
    apply.p = Some(vector()?);
    Ok([host.workspace(&sample)?.size(), host.workspace(&first)?.size(), host.workspace(&apply)?.size()])
}

#[test]
fn answers_do_not_depend_on_strides() -> Result<(), Error> {
    for v in [1, 8, 1000, 4096] {
        assert_eq!(sizes(v, 1)?, sizes(v, 3)?, "{v} columns");
    }
    Ok(())
}

#[test]
fn the_longest_rows_need_no_more_than_a_quarter_of_a_mebibyte() -> Result<(), Error> {
    let [sample, first, apply] = sizes(1 << 20, 1)?;
    assert!(sample <= 256 << 10, "{sample}");
    assert!(first <= 256 << 10, "{first}");
    assert!(apply <= 256 << 10, "{apply}");
    // Rows that are not contiguous are brought together.
    assert!(sizes(1 << 20, 2)?[0] >= 4 << 20);
    Ok(())
}
