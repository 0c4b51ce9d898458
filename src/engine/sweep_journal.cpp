#include "engine/sweep_journal.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "liuli/error.h"

namespace liuli {
namespace {

constexpr const char* kKey = "liuli sweep";

[[noreturn]] void fail(const std::string& path) {
  throw Error(ErrorCode::io_error, fmt::format("{}: {}", path, std::strerror(errno)));
}

void append_line(const std::string& path, const nlohmann::json& json) {
  std::ofstream file(path, std::ios::app | std::ios::binary);
  file << json.dump() << '\n';
  file.flush();
  if (!file) fail(path);
}

}  // namespace

SweepJournal::SweepJournal(const std::string& path, const std::string& sweep) : path_(path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    append_line(path, {{kKey, sweep}});
    return;
  }
  std::stringstream text;
  text << file.rdbuf();
  if (file.bad()) fail(path);
  read(text.str(), sweep);
}

// A last line without its end was being written when the program died: it is cut off.
void SweepJournal::read(const std::string& text, const std::string& sweep) {
  const size_t whole = text.rfind('\n') + 1;
  std::istringstream lines(text.substr(0, whole));
  std::string line;
  try {
    for (int number = 1; std::getline(lines, line); number++) {
      const auto json = nlohmann::json::parse(line);
      if (number == 1) {
        if (json.at(kKey).get<std::string>() == sweep) continue;
        throw Error(
            ErrorCode::invalid_argument,
            fmt::format("{}: the journal of another sweep ({}, this one is {}): other prompts, model or "
                        "settings",
                        path_, json.at(kKey).get<std::string>(), sweep));
      }
      const auto& at = json.at("at");
      const auto& values = json.at("values");
      for (size_t i = 0; i < at.size(); i++)
        found_.push_back({at.at(i).get<int64_t>(), values.at(i).is_null()
                                                       ? std::numeric_limits<double>::quiet_NaN()
                                                       : values.at(i).get<double>()});
    }
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: not the journal of a sweep ({})", path_, e.what()));
  }
  if (whole == text.size()) return;
  std::error_code error;
  std::filesystem::resize_file(path_, whole, error);
  if (error) throw Error(ErrorCode::io_error, fmt::format("{}: {}", path_, error.message()));
  if (whole == 0) append_line(path_, {{kKey, sweep}});
}

void SweepJournal::append(const std::vector<Entry>& entries) {
  if (path_.empty() || entries.empty()) return;
  nlohmann::json at = nlohmann::json::array(), values = nlohmann::json::array();
  for (const Entry& entry : entries) {
    at.push_back(entry.at);
    values.push_back(entry.value);
  }
  append_line(path_, {{"at", std::move(at)}, {"values", std::move(values)}});
}

}  // namespace liuli
