#!/bin/sh
# Lays out a CANN under PREFIX/lib/tilekern-cann whose libraries are this one, with the headers that programs for CANN include.
#
#   ffi/opapi-host/install.sh PREFIX        then: . PREFIX/lib/tilekern-cann/set_env.sh
#
# The library is release/libtilekern_opapi.so of CARGO_TARGET_DIR or else of target, built if it is missing, or what
# TILEKERN_OPAPI_LIBRARY says.
set -eu

[ $# = 1 ] || { echo "usage: $0 PREFIX" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
library=${TILEKERN_OPAPI_LIBRARY:-$target/release/libtilekern_opapi.so}
[ -e "$library" ] || [ -n "${TILEKERN_OPAPI_LIBRARY:-}" ] ||
  cargo build --release --manifest-path "$here/Cargo.toml" --target-dir "$target"

mkdir -p "$1/lib"
prefix=$(cd "$1" && pwd)
home=$prefix/lib/tilekern-cann
mkdir -p "$home/lib64" "$home/opp" "$home/include/acl" "$home/include/aclnn" "$home/include/aclnnop"

# Under another name first, so that a program which has the old one mapped keeps it.
cp "$library" "$home/lib64/libtilekern_opapi.so.new"
mv -f "$home/lib64/libtilekern_opapi.so.new" "$home/lib64/libtilekern_opapi.so"
for name in ascendcl acl_rt nnopbase opapi opapi_nn opapi_math opapi_transformer; do
  ln -sf libtilekern_opapi.so "$home/lib64/lib$name.so"
done

cp "$here/include/tilekern_aclnn.h" "$home/include/"
operators="aclnn_top_k_top_p_sample aclnn_top_k_top_p_sample_v2 aclnn_apply_top_k_top_p aclnn_multinomial aclnn_multinomial_tensor
  aclnn_gather aclnn_stateless_exponential aclnn_grouped_matmul_swiglu_quant aclnn_grouped_matmul_swiglu_quant_weight_nz
  aclnn_grouped_matmul_swiglu_quant_v2 aclnn_grouped_matmul_swiglu_quant_weight_nz_v2"
forward() { printf '#include "../tilekern_aclnn.h"\n' > "$home/include/$1.h"; }
for name in acl acl_base acl_base_rt acl_rt; do forward "acl/$name"; done
for name in acl_meta aclnn_base; do forward "aclnn/$name"; done
for name in $operators; do forward "aclnnop/$name"; done

cat > "$home/set_env.sh" <<END
# What a program for CANN looks for.
export ASCEND_HOME_PATH='$home'
export ASCEND_TOOLKIT_HOME='$home'
export ASCEND_OPP_PATH='$home/opp'
export LD_LIBRARY_PATH='$home/lib64'\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
END
echo "$home"
