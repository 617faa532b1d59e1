//! Tiles: the int8 product, and attention.
//!
//! The number of rows, panels and steps a tile takes at once is a const generic; the bits of a result never depend on it.

mod attention;
mod bands;
mod columns;
mod cut;
mod few;
mod gemv;
mod int8;
mod matmul;
mod pack_columns;
mod pack_floats;
mod pack_strip;
mod panel_by_panel;
mod requests;
mod rows;
mod side_by_side;
mod slabs;
mod straight;
mod stripes;
mod unit;
mod unpacked;
mod waiting;
mod ways;
mod weight_rows;
mod woven;

pub use attention::{Attention, KvTiled};
pub use matmul::{Finished, MATMUL_WORDS, Matmul, Sink, Tiled};
pub use pack_columns::{PackColumns, WeightColumns};
pub use pack_floats::{FloatRows, PackFloatColumns, PackFloats};
pub use pack_strip::{NibbleRows, PackNibbles, PackStrip};
pub use panel_by_panel::PanelByPanel;
pub use rows::{Activations, Bands, PackBand, PackRows, PackedRows, row_words};
pub use unpacked::{MatmulRows, UNPACKED_WORDS};
pub use ways::{Lie, few_rows, strip_columns, suit_bands};
pub use weight_rows::WeightRows;
