//! The models and the decoding loop, as they are without `std` and without an allocator.

use tilekern::llama::{Decoding, DecodingConfig, Model, ModelOptions, RowSampling};
use tilekern::{Error, Host, Serial, Tensor, TensorMut};

type Serially = Host<Serial>;

/// One module for each pair of dtypes.
macro_rules! per_dtypes {
    ($($module:ident: $t:ty, $k:ty;)*) => {$(
        #[doc = concat!("Activations of `", stringify!($t), "`, caches of `", stringify!($k), "`.")]
        pub mod $module {
            use super::*;

            /// Loads a model.
            pub fn load<'m>(options: &ModelOptions<'_>, file: &[u8], memory: &'m mut [u8]) -> Result<Model<'m, $t>, Error> {
                Model::<$t>::layout(options, file).and_then(|_| Model::load(options, file, memory))
            }

            /// Decodes one row to its end.
            pub fn decode(
                host: &Serially,
                config: &DecodingConfig,
                model: &Model<'_, $t>,
                memory: &mut [u8],
                tokens: Tensor<'_, i32>,
                [step, output, lengths]: [TensorMut<'_, i32>; 3],
            ) -> Result<usize, Error> {
                let size = Decoding::<$t, $k>::layout(host, config, model)?.size();
                let mut decoding = Decoding::<$t, $k>::new(host, config, model, memory)?;
                decoding.set_row(0, &RowSampling::default())?;
                decoding.replace_row(host, 0, tokens)?;
                decoding.prompt(host, tokens, tokens)?;
                decoding.step(host, step)?;
                decoding.generate(host, |_, _| core::ops::ControlFlow::Continue(()))?;
                decoding.output(output, lengths)?;
                Ok(size)
            }
        }
    )*};
}
per_dtypes! {
    f32_f32: f32, f32;
    f16_f32: half::f16, f32;
    bf16_bf16: half::bf16, half::bf16;
}
