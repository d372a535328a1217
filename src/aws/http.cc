#include "aws/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <mutex>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"

namespace pawl::aws {
namespace {

using List = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

struct Receiving {
  Response response = {};
  std::size_t body_max = 0;
  std::size_t header_bytes = 0;
  bool too_large = false;
};

std::size_t on_body(const char* bytes, std::size_t, std::size_t size, void* user) {
  auto& receiving = *static_cast<Receiving*>(user);
  if (size > receiving.body_max - receiving.response.body.size()) {
    receiving.too_large = true;
    return 0;
  }
  receiving.response.body.append(bytes, size);
  return size;
}

std::size_t on_header(const char* bytes, std::size_t, std::size_t size, void* user) {
  auto& receiving = *static_cast<Receiving*>(user);
  receiving.header_bytes += size;
  if (receiving.header_bytes > limits::kStoreHeaderMax) {
    receiving.too_large = true;
    return 0;
  }
  std::string_view line(bytes, size);
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return size;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view value = line.substr(colon + 1);
  while (value.starts_with(' ')) value.remove_prefix(1);
  receiving.response.headers.push_back({std::move(name), std::string(value)});
  return size;
}

// Failures before anything was sent.
bool nothing_was_sent(CURLcode code) {
  constexpr CURLcode kBefore[] = {
      CURLE_UNSUPPORTED_PROTOCOL,     CURLE_URL_MALFORMAT,      CURLE_COULDNT_RESOLVE_PROXY,
      CURLE_COULDNT_RESOLVE_HOST,     CURLE_COULDNT_CONNECT,    CURLE_SSL_CONNECT_ERROR,
      CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM};
  return std::find(std::begin(kBefore), std::end(kBefore), code) != std::end(kBefore);
}

class CurlHttp final : public Http {
 public:
  explicit CurlHttp(HttpOptions options) : options_(std::move(options)), curl_(open()) {}

  Result<Response> send(const std::string& origin, const Request& request,
                        std::size_t body_max) override {
    Receiving receiving;
    receiving.body_max = body_max;
    std::string url = origin + request.path;
    if (const std::string query = query_text(request); !query.empty()) url += "?" + query;
    const List headers = to_list(request);
    prepare(url, request, headers.get(), receiving);
    std::array<char, CURL_ERROR_SIZE> words{};
    set(CURLOPT_ERRORBUFFER, words.data());
    const CURLcode code = curl_easy_perform(curl_.get());
    set(CURLOPT_ERRORBUFFER, static_cast<char*>(nullptr));
    if (code == CURLE_OK) {
      long status = 0;
      curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
      receiving.response.status = static_cast<int>(status);
      long connects = 0;
      curl_easy_getinfo(curl_.get(), CURLINFO_NUM_CONNECTS, &connects);
      receiving.response.perhaps_repeated = connected_ && connects > 0;
      connected_ = true;
      return std::move(receiving.response);
    }
    const std::string failed = "the request to " + origin + " failed: ";
    // Asking again would bring the same answer.
    if (receiving.too_large && request.method == "GET")
      return Error{Code::kInvalid, failed + "its answer has more than " + std::to_string(body_max) +
                                       " bytes, or too long headers"};
    curl_off_t connected = 0;  // A time-out while connecting has sent nothing either.
    curl_easy_getinfo(curl_.get(), CURLINFO_CONNECT_TIME_T, &connected);
    const bool before =
        nothing_was_sent(code) || (code == CURLE_OPERATION_TIMEDOUT && connected == 0);
    return Error{before ? Code::kUnavailable : Code::kUnknown,
                 failed + (words.front() != '\0' ? words.data() : curl_easy_strerror(code))};
  }

 private:
  using Handle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;

  static Handle open() {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    Handle made(curl_easy_init(), curl_easy_cleanup);
    PAWL_ASSERT(made != nullptr);
    return made;
  }

  template <class Value>
  void set(CURLoption option, Value value) {
    const CURLcode done = curl_easy_setopt(curl_.get(), option, value);
    PAWL_ASSERT(done == CURLE_OK);
  }

  static List to_list(const Request& request) {
    curl_slist* list = nullptr;
    const auto add = [&](const std::string& line) { list = curl_slist_append(list, line.c_str()); };
    for (const Header& header : request.headers) add(header.name + ": " + header.value);
    add("expect:");  // No wait for "100 Continue", and no content type that was not signed.
    if (std::none_of(request.headers.begin(), request.headers.end(),
                     [](const Header& header) { return header.name == "content-type"; }))
      add("content-type:");
    return {list, curl_slist_free_all};
  }

  void prepare(const std::string& url, const Request& request, curl_slist* headers,
               Receiving& receiving) {
    curl_easy_reset(curl_.get());  // Keeps the connection.
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_PATH_AS_IS, 1L);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_HTTPHEADER, headers);
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect_timeout.count()));
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(options_.timeout.count()));
    if (!options_.ca_file.empty()) set(CURLOPT_CAINFO, options_.ca_file.c_str());
    set(CURLOPT_HEADERFUNCTION, on_header);
    set(CURLOPT_HEADERDATA, static_cast<void*>(&receiving));
    set(CURLOPT_WRITEFUNCTION, on_body);
    set(CURLOPT_WRITEDATA, static_cast<void*>(&receiving));
    if (request.method == "HEAD") {
      set(CURLOPT_NOBODY, 1L);
    } else if (request.method != "GET") {
      set(CURLOPT_POST, 1L);
      set(CURLOPT_POSTFIELDS, request.body.data());
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    }
  }

  const HttpOptions options_;
  const Handle curl_;
  bool connected_ = false;  // by an earlier request
};

}  // namespace

std::string_view Response::header(std::string_view name) const {
  for (const Header& header : headers) {
    if (header.name == name) return header.value;
  }
  return {};
}

std::unique_ptr<Http> make_http(HttpOptions options) {
  return std::make_unique<CurlHttp>(std::move(options));
}

}  // namespace pawl::aws
