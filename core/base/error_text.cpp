#include <capo/core/base/error_text.h>

#include <locale.h>
#include <cstring>

namespace capo {

std::string error_text(int code) {
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  return strerror_l(code, plain);
}

}  // namespace capo
