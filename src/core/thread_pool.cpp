#include "core/thread_pool.h"
namespace liuli {}
