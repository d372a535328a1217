#include "tls/certificate.h"

#include <arpa/inet.h>

#include <algorithm>
#include <ctime>
#include <string_view>

namespace pawl::tls {
namespace {

std::string to_text(const X509_NAME* name) {
  const Handle<BIO> out(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_RFC2253);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string_view bytes_of(const ASN1_STRING& text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(&text)),
          static_cast<std::size_t>(ASN1_STRING_length(&text))};
}

bool is_one_line(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// The host in one entry of the alternative names; empty if the entry is not a host.
std::string host_in(const GENERAL_NAME& name) {
  if (name.type == GEN_DNS) return std::string(bytes_of(*name.d.dNSName));
  if (name.type != GEN_IPADD) return {};
  const std::string_view address = bytes_of(*name.d.iPAddress);
  char text[INET6_ADDRSTRLEN] = "";
  if (address.size() == 4) inet_ntop(AF_INET, address.data(), text, sizeof text);
  if (address.size() == 16) inet_ntop(AF_INET6, address.data(), text, sizeof text);
  return text;
}

}  // namespace

std::string common_name(const X509& certificate) {
  const X509_NAME* subject = X509_get_subject_name(&certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return {};
  unsigned char* utf8 = nullptr;
  const int size =
      ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size < 0) return {};
  std::string name(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(size));
  OPENSSL_free(utf8);
  return is_one_line(name) ? name : std::string();
}

std::string title_of(const X509& certificate) {
  const std::string name = common_name(certificate);
  return name.empty() ? to_text(X509_get_subject_name(&certificate)) : name;
}

std::string issuer_of(const X509& certificate) {
  return to_text(X509_get_issuer_name(&certificate));
}

std::string hosts_of(const X509& certificate) {
  const Handle<GENERAL_NAMES> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(const_cast<X509*>(&certificate), NID_subject_alt_name, nullptr, nullptr)));
  std::string hosts;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const std::string host = host_in(*sk_GENERAL_NAME_value(names.get(), i));
    if (!host.empty() && is_one_line(host)) hosts += (hosts.empty() ? "" : ", ") + host;
  }
  // Without alternative names, clients compare the common name.
  if (!names) hosts = common_name(certificate);
  return hosts.empty() ? "no host" : hosts;
}

std::string host_for_clients(const X509& certificate, const std::string& host) {
  X509* own = const_cast<X509*>(&certificate);
  const auto covers = [own](const std::string& name) {
    return X509_check_ip_asc(own, name.c_str(), 0) == 1 ||
           X509_check_host(own, name.c_str(), name.size(), 0, nullptr) == 1;
  };
  if (covers(host)) return host;
  if (host.starts_with("127.") && covers("localhost")) return "localhost";
  const std::string hosts = hosts_of(certificate);
  const std::string first = hosts.substr(0, hosts.find(','));
  return covers(first) ? first : host;
}

std::string to_text(const ASN1_TIME& time) {
  std::tm parts{};
  char text[32] = "?";
  if (ASN1_TIME_to_tm(&time, &parts) == 1)
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

std::optional<std::int64_t> to_unix(const ASN1_TIME& time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(&time, &parts) != 1) return std::nullopt;
  return ::timegm(&parts);
}

std::optional<std::string> out_of_date(const X509& certificate) {
  const ASN1_TIME* from = X509_get0_notBefore(&certificate);
  const ASN1_TIME* until = X509_get0_notAfter(&certificate);
  if (X509_cmp_current_time(until) <= 0) return "expired on " + to_text(*until);
  if (X509_cmp_current_time(from) > 0) return "is not valid before " + to_text(*from);
  return std::nullopt;
}

}  // namespace pawl::tls
