#include "aws/sigv4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "base/assert.h"

namespace pawl::aws {
namespace {

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

std::string_view view(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string hex(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Digest hmac(std::string_view key, std::string_view text) {
  Digest digest{};
  unsigned size = 0;
  const unsigned char* done =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  PAWL_ASSERT(done != nullptr && size == digest.size());
  return digest;
}

std::string encode_but(std::string_view text, std::string_view kept) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       kept.find(c) != kept.npos;
    if (plain) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

// Without spaces at both ends, and inside only one at a time.
std::string trimmed(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == ' ' && (text.empty() || text.back() == ' ')) continue;
    text += c;
  }
  if (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string joined(std::initializer_list<std::string_view> lines) {
  std::string text;
  for (const std::string_view line : lines) (text += line) += '\n';
  text.pop_back();
  return text;
}

}  // namespace

std::string encode(std::string_view text) {
  return encode_but(text, "-._~");
}

std::string encode_path(std::string_view path) {
  return encode_but(path, "-._~/");
}

std::string query_text(const Request& request) {
  std::vector<std::string> pairs;
  for (const auto& [name, value] : request.query)
    pairs.push_back(encode(name) + "=" + encode(value));
  std::sort(pairs.begin(), pairs.end());
  std::string text;
  for (const std::string& pair : pairs) text += (text.empty() ? "" : "&") + pair;
  return text;
}

std::string to_time_text(std::time_t time) {
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts)};
}

std::string sha256_hex(std::string_view bytes) {
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return hex(digest);
}

void sign(Request& request, const Scope& scope, const Credentials& credentials,
          std::string_view time) {
  const std::string payload = sha256_hex(request.body);
  request.headers.push_back({"x-amz-date", std::string(time)});
  if (scope.service == "s3") request.headers.push_back({"x-amz-content-sha256", payload});
  if (!credentials.session_token.empty())
    request.headers.push_back({"x-amz-security-token", credentials.session_token});

  std::vector<Header> headers = request.headers;
  headers.push_back({"host", scope.host});
  std::sort(headers.begin(), headers.end(),
            [](const Header& a, const Header& b) { return a.name < b.name; });
  std::string lines;
  std::string names;
  for (const Header& header : headers) {
    lines += header.name + ":" + trimmed(header.value) + "\n";
    names += (names.empty() ? "" : ";") + header.name;
  }
  const std::string canonical =
      joined({request.method, request.path, query_text(request), lines, names, payload});

  const std::string_view day = time.substr(0, 8);
  const std::string where =
      std::string(day) + "/" + scope.region + "/" + scope.service + "/aws4_request";
  const std::string to_sign = joined({"AWS4-HMAC-SHA256", time, where, sha256_hex(canonical)});
  Digest key = hmac("AWS4" + credentials.secret_key, day);
  for (const std::string_view part :
       {std::string_view(scope.region), std::string_view(scope.service),
        std::string_view("aws4_request")})
    key = hmac(view(key), part);
  request.headers.push_back(
      {"authorization", "AWS4-HMAC-SHA256 Credential=" + credentials.access_key + "/" + where +
                            ", SignedHeaders=" + names +
                            ", Signature=" + hex(hmac(view(key), to_sign))});
}

}  // namespace pawl::aws
