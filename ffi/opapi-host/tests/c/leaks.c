/* Makes executors that it never runs, and forgets what it described and allocated. */
#include "acl/acl.h"
#include "aclnnop/aclnn_gather.h"

int main(void) {
  int64_t shape[2] = {1, 4};
  void *memory;
  if (aclInit(NULL) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS) return 1;
  if (aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return 1;
  aclTensor *values = aclCreateTensor(shape, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, shape, 2, memory);
  aclTensor *index = aclCreateTensor(shape, 2, ACL_INT64, NULL, 2, ACL_FORMAT_ND, shape, 2, memory);
  aclTensor *out = aclCreateTensor(shape, 2, ACL_FLOAT, NULL, 12, ACL_FORMAT_ND, shape, 2, memory);
  for (int i = 0; i < 2; i++) {
    uint64_t bytes;
    aclOpExecutor *executor;
    if (aclnnGatherGetWorkspaceSize(values, 1, index, out, &bytes, &executor) != ACL_SUCCESS) return 1;
  }
  return aclrtResetDevice(0) != ACL_SUCCESS || aclFinalize() != ACL_SUCCESS;
}
