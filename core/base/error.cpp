#include "core/base/error.h"

#include <locale.h>
#include <cstring>

namespace capo {

std::string error_text(int code) {
  static const locale_t kPlain = newlocale(LC_ALL_MASK, "C", nullptr);
  return strerror_l(code, kPlain);
}

}  // namespace capo
