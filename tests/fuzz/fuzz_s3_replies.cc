// Whatever a store answers: lists and errors in XML, fenced objects, records and installations. A
// fenced object that is accepted is read back as it was written.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "aws/credentials.h"
#include "base/assert.h"
#include "guard/s3/bucket.h"
#include "guard/s3/envelope.h"
#include "guard/s3/names.h"
#include "guard/s3/record.h"
#include "guard/s3/replies.h"
#include "guard/s3/rules.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pawl::guard;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto envelope = parse_envelope(bytes)) {
    const auto again = parse_envelope(to_bytes(*envelope));
    PAWL_ASSERT(again && *again == *envelope);
    const S3Verdict verdict = judge_s3_write(*envelope, 34, 1);
    PAWL_ASSERT(verdict.verdict != pawl::Verdict::kAdmitted || envelope->token <= 34);
  }
  static_cast<void>(parse_list_page(bytes));
  static_cast<void>(xml_text(bytes, "Code"));
  static_cast<void>(key_of_record(bytes));
  static_cast<void>(sequence_of(bytes));
  const S3Record record = parse_record(bytes);
  static_cast<void>(parse_record(to_bytes(record)));
  static_cast<void>(parse_installation(bytes));
  static_cast<void>(pawl::aws::read_credentials(bytes, "default"));
  return 0;
}
