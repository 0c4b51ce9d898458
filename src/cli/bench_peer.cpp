#include "cli/bench_peer.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/text_table.h"

namespace liuli::cli {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// A file without a name, gone when it is closed.
File temporary_file() {
  File file(std::tmpfile(), std::fclose);
  if (file == nullptr)
    throw Error(ErrorCode::io_error, fmt::format("no temporary file: {}", std::strerror(errno)));
  return file;
}

std::string content_of(std::FILE* file) {
  std::rewind(file);
  std::string text;
  char piece[4096];
  while (const size_t n = std::fread(piece, 1, sizeof piece, file)) text.append(piece, n);
  return text;
}

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of("\n ");
  if (end == std::string::npos) return "it said nothing";
  const size_t begin = text.find_last_of('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

std::vector<char*> arguments_of(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

// In the child: never returns.
[[noreturn]] void become(const std::vector<char*>& arguments, int output, int errors) {
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

std::string list(std::vector<int> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values.empty() ? "0" : joined(values, ",");
}

std::vector<std::string> command_of(const BenchPeer& peer, const std::string& prompts,
                                    const std::string& generations, const std::string& depths) {
  std::vector<std::string> command = {peer.path,
                                      "-m",
                                      peer.model,
                                      "-p",
                                      prompts,
                                      "-n",
                                      generations,
                                      "-d",
                                      depths,
                                      "-t",
                                      fmt::format("{}", peer.threads),
                                      "-r",
                                      "1",
                                      "-o",
                                      "json"};
  if (!peer.cache_type.empty())
    command.insert(command.end(), {"-fa", "1", "-ctk", peer.cache_type, "-ctv", peer.cache_type});
  return command;
}

bool is_case(const nlohmann::json& row, const BenchCase& c) {
  const int prompt = row.value("n_prompt", 0), generated = row.value("n_gen", 0),
            depth = row.value("n_depth", 0);
  const bool same = c.kind == BenchKind::prompt ? prompt == c.tokens && generated == 0
                                                : generated == c.tokens && prompt == 0;
  return same && depth == c.depth && c.batch == 1;
}

}  // namespace

ProgramRun run_program(const std::vector<std::string>& command) {
  const File output = temporary_file(), errors = temporary_file();
  const std::vector<char*> arguments = arguments_of(command);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child < 0)
    throw Error(ErrorCode::out_of_memory, fmt::format("no new process: {}", std::strerror(errno)));
  if (child == 0) become(arguments, fileno(output.get()), fileno(errors.get()));
  int status = 0;
  rusage usage = {};
  while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  ProgramRun run;
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  run.peak_memory = static_cast<int64_t>(usage.ru_maxrss) * 1024;  // Linux counts KiB
  run.output = content_of(output.get());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    throw Error(ErrorCode::not_found, fmt::format("{}: the program cannot be started", command[0]));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {} {}: {}", command[0], WIFEXITED(status) ? "exit code" : "ended by signal",
                            WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
                            last_line(content_of(errors.get()))));
  return run;
}

int64_t run_peer(const BenchPeer& peer, std::vector<BenchResult>& results) {
  std::vector<int> prompts, generations, depths;
  for (const BenchResult& result : results) {
    (result.bench_case.kind == BenchKind::prompt ? prompts : generations).push_back(result.bench_case.tokens);
    depths.push_back(result.bench_case.depth);
  }
  const ProgramRun run = run_program(command_of(peer, list(prompts), list(generations), list(depths)));
  const auto rows = nlohmann::json::parse(run.output, nullptr, false);
  if (!rows.is_array())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} -o json: no JSON list of tests came out", peer.path));
  for (BenchResult& result : results)
    for (const auto& row : rows)
      if (is_case(row, result.bench_case)) result.peer_rates.push_back(row.value("avg_ts", 0.0));
  return run.peak_memory;
}

double peer_first_token_seconds(const BenchPeer& peer, int n) {
  auto command = command_of(peer, fmt::format("{}", n), "0", "0");
  command.push_back("--no-warmup");
  return run_program(command).seconds;
}

}  // namespace liuli::cli
