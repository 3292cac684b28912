// A harness for one forward RNN layer with Tanh, all float32: c++ -std=c++17 -O2 harness.cpp
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using std::string;
using std::vector;

// The text between a key and the next `end`; "" if there is no such key.
string after(const string &text, const string &key, char end) {
  size_t at = text.find(key);
  if (at == string::npos) return "";
  at += key.size();
  return text.substr(at, text.find(end, at) - at);
}

template <class T> struct Tensor {  // without elements if the request has no such input
  vector<T> data;
  long dims[3] = {1, 1, 1};

  Tensor(const string &line, const string &name) {
    const string row = after(line, "\"" + name + "\":{", '}');
    std::istringstream shape(after(row, "\"shape\":[", ']'));
    for (long &size : dims)
      if (shape >> size) shape.ignore();
      else size = 1;
    if (!row.empty()) data.resize(dims[0] * dims[1] * dims[2]);
    std::ifstream file(after(row, "\"file\":\"", '"'), std::ios::binary);
    file.read(reinterpret_cast<char *>(data.data()), data.size() * sizeof(T));
  }
};

// Whether attributes say what shapes and requested outputs do, or defaults.
bool are_plain(string attributes) {
  for (const string name : {"\"hidden_size\":", "\"output_sequence\":", "\"direction\":\"forward\"",
                            "\"layout\":0", "\"activations\":[\"Tanh\"]"})
    if (const size_t at = attributes.find(name); at != string::npos)
      attributes.erase(at, name.size());
  return attributes.find_first_not_of("0123456789,") == string::npos;
}

string refusal(const string &line) {
  const string operation = after(line, "\"operator\":\"", '"');
  const string type = after(line, "\"dtype\":\"", '"');
  if (operation.rfind("RNN-", 0) != 0) return "no " + operation;
  if (type != "float32") return "no " + type;
  if (line.find("\"quantise\":") != string::npos) return "no integers";
  if (!are_plain(after(line, "\"attributes\":{", '}'))) return "only defaults";
  return "";
}

// Write an output if it is asked for; return how the answer describes it.
string save(const string &line, const string &name, const vector<float> &data, string shape) {
  const string asked = after(line.substr(line.rfind("\"outputs\":")), "[", ']');
  if (asked.find("\"" + name + "\"") == string::npos) return "";
  std::ofstream file(after(line, "\"dir\":\"", '"') + "/" + name + ".bin", std::ios::binary);
  file.write(reinterpret_cast<const char *>(data.data()), data.size() * sizeof(float));
  return '"' + name + R"(":{"file":")" + name + R"(.bin","dtype":"float32","shape":[)" + shape + "]}";
}

string run(const string &line) {
  const Tensor<float> X(line, "X"), W(line, "W"), R(line, "R"), B(line, "B"), h0(line, "initial_h");
  const Tensor<int32_t> lengths(line, "sequence_lens");
  const long T = X.dims[0], N = X.dims[1], I = X.dims[2], H = R.dims[2];
  vector<float> Y(T * N * H), h(h0.data);
  h.resize(N * H);
  for (long row = 0; row < T * N; row++) {  // row = t * N + n
    const long t = row / N, n = row % N;
    if (!lengths.data.empty() && t >= lengths.data[n]) continue;  // Y stays 0, h as it is
    for (long u = 0; u < H; u++) {
      float sum = B.data.empty() ? 0 : B.data[u] + B.data[H + u];
      for (long i = 0; i < I; i++) sum += W.data[u * I + i] * X.data[row * I + i];
      for (long j = 0; j < H; j++) sum += R.data[u * H + j] * h[n * H + j];
      Y[row * H + u] = std::tanh(sum);
    }
    std::copy_n(Y.begin() + row * H, H, h.begin() + n * H);
  }
  const string shape = "1," + std::to_string(N) + "," + std::to_string(H);
  const string first = save(line, "Y", Y, std::to_string(T) + "," + shape);
  const string second = save(line, "Y_h", h, shape);
  return first + (first.empty() || second.empty() ? "" : ",") + second;
}

int main() {
  for (string line; std::getline(std::cin, line);) {
    const string command = after(line, "\"cmd\":\"", '"');
    if (command == "stop") break;
    if (command == "start") {
      std::cout << R"({"version":1,"implementation":)"
                << R"({"name":"my-kernel","version":"1.0","language":"C++"}})";
    } else {
      const string reason = refusal(line);
      std::cout << "{\"seq\":" << after(line, "\"seq\":", ',') << ","
                << (reason.empty() ? "\"outputs\":{" + run(line) + "}}"
                                   : "\"skipped\":true,\"message\":\"" + reason + "\"}");
    }
    std::cout << std::endl;
  }
}
