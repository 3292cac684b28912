/* Judges a device's raw outputs against a raw pack, as `rnncli verify --results` does.

     cc -std=c99 -O2 -o judge judge.c -lm
     ./judge PACK RESULTS

   One file, C99, IEEE 754 floats, no library but libm; not for -ffast-math. The usage below says
   what it reads and prints. Files may be hostile: sizes, nesting, paths and checksums are checked.
   C has no way to tell a link from a file: judge packs and results in folders of your own. */

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "-ffast-math makes NaN and infinities compare equal to anything"
#endif

static const char USAGE[] =
    "usage: judge [--allow-missing] [--allow-refused] [--reading NAME=CHOICE] [--max-bias Z]\n"
    "             [--atol NUMBER] [--rtol NUMBER] PACK RESULTS [ID...]\n"
    "\n"
    "PACK is a pack in the layout raw: `rnncli convert vectors/core PACK --format raw`.\n"
    "RESULTS holds what the device computed, in files with the names that PACK has:\n"
    "  RESULTS/test_ID/outputs/Y.bin          each output that the case asks for: its elements,\n"
    "                                         little-endian, last dimension fastest, no header\n"
    "  RESULTS/test_ID/calls/1/outputs/Y.bin  those of a second call\n"
    "  RESULTS/test_ID/steps/outputs/gate_i.bin  a signal of every step, if PACK stores signals;\n"
    "                                         all, some or none of them\n"
    "  RESULTS/test_ID/refused.txt            instead, if the device refused the case\n"
    "--reading is the choice that the device declares on a contested point, such as\n"
    "requantise=state; it is judged by that and by no other.\n"
    "--max-bias fails the run if the errors within the tolerances lean one way over the pack, by\n"
    "more than Z standard errors beyond what functions cause; without it, more than 5 are a note.\n"
    "--atol and --rtol judge by other tolerances than PACK's: an element passes within atol +\n"
    "rtol * |expected|. Fixed point of 12 binary places is right to one unit by --atol 0x1p-12.\n"
    "ID... are the cases to judge, where * stands for any characters, as in 'lstm_14_*'; without\n"
    "them, all.\n"
    "\n"
    "A line for each case: verdict, id, worst margin (error / tolerance) and where, with tabs.\n"
    "Exit code: 0 all agree; 1 a case fails; 2 bad input; 3 not supported; 5 nothing was judged.\n";

enum { AGREED = 0, FAILED = 1, BAD_INPUT = 2, UNSUPPORTED = 3, NOTHING_JUDGED = 5 };
enum {
  DEEPEST = 32, MOST_MEMBERS = 4096, MOST_TOKENS = 1 << 23, LONGEST_NUMBER = 40,
  LONGEST_NAME = 256, LONGEST_PATH = 4096, MOST_DIMENSIONS = 32, MOST_OUTPUTS = 16
};
static const size_t LARGEST_TEXT = (size_t)1 << 26, LARGEST_TENSOR = (size_t)1 << 30;

/* Writes a text of the pack or the results without its control characters. */
static void print_plain(FILE *stream, const char *text) {
  for (; *text; text++)
    fputc((unsigned char)*text < 32 || *text == 127 ? '?' : *text, stream);
}

static void stop(int code, const char *format, ...) {
  char sentence[4 * LONGEST_PATH];
  va_list values;
  va_start(values, format);
  vsnprintf(sentence, sizeof sentence, format, values);
  va_end(values);
  fflush(stdout);
  fputs("judge: ", stderr);
  print_plain(stderr, sentence);
  fputc('\n', stderr);
  exit(code);
}

static void *allocate(void *old, size_t size) {
  void *found = realloc(old, size ? size : 1);
  if (!found) stop(BAD_INPUT, "no memory for %lu bytes", (unsigned long)size);
  return found;
}

/* ---- files ---- */

typedef struct { unsigned char *data; size_t size; int is_there; } Content;

/* Reads at most `limit` bytes and one more, which tells a larger file. */
static Content content_of(const char *path, size_t limit) {
  Content found = {NULL, 0, 0};
  FILE *file = fopen(path, "rb");
  if (!file) return found;
  for (size_t room = 0, got = 1; got && found.size <= limit; found.size += got) {
    if (found.size == room) {
      room = room ? 2 * room : 4096;
      if (room > limit + 1) room = limit + 1;
      found.data = allocate(found.data, room);
    }
    got = fread(found.data + found.size, 1, room - found.size, file);
  }
  if (ferror(file)) stop(BAD_INPUT, "%s: cannot be read", path);
  fclose(file);
  found.is_there = 1;
  return found;
}

/* Whether no folder has this path: C opens one on some systems, and elsewhere says another error. */
static int is_nowhere(const char *path) {
  int is_absent = 0;
#ifdef ENOENT
  errno = 0;
  FILE *file = fopen(path, "rb");
  is_absent = !file && errno == ENOENT;
  if (file) fclose(file);
#else
  (void)path;
#endif
  return is_absent;
}

static void join(char *path, const char *folder, const char *name) {
  int length = snprintf(path, LONGEST_PATH, "%s/%s", folder, name);
  if (length < 0 || length >= LONGEST_PATH) stop(BAD_INPUT, "%s: the path is too long", name);
}

/* A path with forward slashes that stays below its folder. */
static int is_safe(const char *path) {
  if (!*path || *path == '/' || strpbrk(path, "\\:")) return 0;
  for (const char *part = path; part; part = strchr(part, '/')) {
    part += *part == '/';
    size_t size = strcspn(part, "/");
    if (!size || size > 255 || part[size - 1] == '.' || part[size - 1] == ' ') return 0;
  }
  for (; *path; path++)
    if ((unsigned char)*path < 32 || *path == 127) return 0;
  return 1;
}

/* ---- SHA-256, FIPS 180-4 ---- */

static uint32_t rotated(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void sha256_block(uint32_t h[8], const unsigned char *block) {
  static const uint32_t K[64] = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
      0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
      0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
      0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
      0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
      0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
      0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
      0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
      0xc67178f2};
  uint32_t w[64], v[8];
  for (int t = 0; t < 16; t++, block += 4)
    w[t] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 | block[3];
  for (int t = 16; t < 64; t++)
    w[t] = w[t - 16] + w[t - 7] +
           (rotated(w[t - 15], 7) ^ rotated(w[t - 15], 18) ^ w[t - 15] >> 3) +
           (rotated(w[t - 2], 17) ^ rotated(w[t - 2], 19) ^ w[t - 2] >> 10);
  memcpy(v, h, sizeof v);
  for (int t = 0; t < 64; t++) {
    uint32_t a = v[7] + (rotated(v[4], 6) ^ rotated(v[4], 11) ^ rotated(v[4], 25)) +
                 ((v[4] & v[5]) ^ (~v[4] & v[6])) + K[t] + w[t];
    uint32_t b = (rotated(v[0], 2) ^ rotated(v[0], 13) ^ rotated(v[0], 22)) +
                 ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    memmove(v + 1, v, 7 * sizeof *v);
    v[4] += a;
    v[0] = a + b;
  }
  for (int k = 0; k < 8; k++) h[k] += v[k];
}

static void sha256(const unsigned char *data, size_t size, char digits[65]) {
  uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  unsigned char last[128] = {0};
  size_t whole = size / 64 * 64, rest = size - whole, end = rest < 56 ? 64 : 128;
  for (size_t at = 0; at < whole; at += 64) sha256_block(h, data + at);
  if (rest) memcpy(last, data + whole, rest);
  last[rest] = 0x80;
  for (int k = 0; k < 8; k++) last[end - 1 - k] = (unsigned char)((uint64_t)size * 8 >> 8 * k);
  for (size_t at = 0; at < end; at += 64) sha256_block(h, last + at);
  for (int k = 0; k < 8; k++) sprintf(digits + 8 * k, "%08lx", (unsigned long)h[k]);
}

/* ---- strict JSON: unique keys, valid UTF-8, bounded nesting and sizes ---- */

typedef enum { NUL, TRUTH, NUMBER, STRING, ARRAY, OBJECT } Kind;
typedef struct { Kind kind; size_t start, end, next; } Token; /* next: the token after the value */
typedef struct {
  const char *path, *text;
  size_t size, at, count, room;
  Token *tokens;
} Json;
typedef size_t Value; /* index of a token; 0 is the whole, so that it also means "none" */

static void broken(const Json *json, const char *what) {
  stop(BAD_INPUT, "%s: is not JSON: %s at byte %lu", json->path, what, (unsigned long)json->at);
}

static int peek(const Json *json) {
  return json->at < json->size ? (unsigned char)json->text[json->at] : -1;
}

static void skip_space(Json *json) {
  while (json->at < json->size && memchr(" \t\n\r", json->text[json->at], 4)) json->at++;
}

static size_t add_token(Json *json, Kind kind) {
  if (json->count == MOST_TOKENS) broken(json, "too many values");
  if (json->count == json->room) {
    json->room = json->room ? 2 * json->room : 256;
    json->tokens = allocate(json->tokens, json->room * sizeof *json->tokens);
  }
  Token *token = json->tokens + json->count;
  token->kind = kind;
  token->start = json->at;
  return json->count++;
}

static void end_token(Json *json, size_t token) {
  json->tokens[token].end = json->at;
  json->tokens[token].next = json->count;
}

static unsigned hex4(Json *json) {
  unsigned value = 0;
  for (int k = 0; k < 4; k++, json->at++) {
    int c = peek(json);
    const char *digits = "0123456789abcdef", *found;
    c = c >= 'A' && c <= 'F' ? c + 32 : c;
    found = c > 0 ? strchr(digits, c) : NULL;
    if (!found) broken(json, "a bad escape");
    value = 16 * value + (unsigned)(found - digits);
  }
  return value;
}

static void skip_escape(Json *json) {
  int c = peek(json);
  if (c < 0 || !strchr("\"\\/bfnrtu", c) || !c) broken(json, "a bad escape");
  json->at++;
  if (c != 'u') return;
  unsigned code = hex4(json);
  if (code >= 0xdc00 && code <= 0xdfff) broken(json, "half a surrogate pair");
  if (code < 0xd800 || code > 0xdbff) return;
  if (peek(json) != '\\' || (json->at++, peek(json) != 'u')) broken(json, "half a surrogate pair");
  json->at++;
  code = hex4(json);
  if (code < 0xdc00 || code > 0xdfff) broken(json, "half a surrogate pair");
}

static void skip_utf8(Json *json) {
  static const unsigned char FIRST[4][2] = {{0, 0x7f}, {0xc2, 0xdf}, {0xe0, 0xef}, {0xf0, 0xf4}};
  int c = peek(json), more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
  if (c < FIRST[more][0] || c > FIRST[more][1]) broken(json, "not UTF-8");
  json->at++;
  for (int k = 0; k < more; k++, json->at++) {
    int d = peek(json), low = 0x80, high = 0xbf;
    if (!k) low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    if (!k) high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (d < low || d > high) broken(json, "not UTF-8");
  }
}

static void parse_string(Json *json) {
  size_t token = add_token(json, STRING);
  if (peek(json) != '"') broken(json, "a text is wanted");
  json->at++;
  while (peek(json) != '"') {
    if (peek(json) < 32) broken(json, "a text without an end, or with a control character");
    if (peek(json) == '\\') json->at++, skip_escape(json);
    else skip_utf8(json);
  }
  json->at++;
  end_token(json, token);
}

static size_t skip_digits(Json *json) {
  size_t start = json->at;
  while (peek(json) >= '0' && peek(json) <= '9') json->at++;
  return json->at - start;
}

static void parse_number(Json *json) {
  size_t token = add_token(json, NUMBER), start = json->at;
  json->at += peek(json) == '-';
  int is_zero = peek(json) == '0';
  size_t digits = skip_digits(json);
  if (!digits || (is_zero && digits > 1)) broken(json, "a value is wanted");
  if (peek(json) == '.') json->at++, digits = skip_digits(json);
  if (!digits) broken(json, "a bad number");
  if (peek(json) == 'e' || peek(json) == 'E') {
    json->at++;
    json->at += peek(json) == '+' || peek(json) == '-';
    if (!skip_digits(json)) broken(json, "a bad number");
  }
  if (json->at - start > LONGEST_NUMBER) broken(json, "a number that is too long");
  end_token(json, token);
}

static void parse_word(Json *json) {
  static const char *const WORDS[] = {"null", "true", "false"};
  for (int k = 0; k < 3; k++) {
    size_t size = strlen(WORDS[k]);
    if (json->size - json->at < size || memcmp(json->text + json->at, WORDS[k], size)) continue;
    size_t token = add_token(json, k ? TRUTH : NUL);
    json->at += size;
    end_token(json, token);
    return;
  }
  broken(json, "a value is wanted");
}

static char *decoded(const Json *json, Value value); /* below; the caller frees it */

static int same_keys(const Json *json, Value a, Value b) {
  const Token *x = json->tokens + a, *y = json->tokens + b;
  size_t size = x->end - x->start, other = y->end - y->start;
  const char *s = json->text + x->start, *t = json->text + y->start;
  if (!memchr(s, '\\', size) && !memchr(t, '\\', other)) 
    return size == other && !memcmp(s, t, size);
  char *first = decoded(json, a), *second = decoded(json, b);
  int same = !strcmp(first, second);
  free(first);
  free(second);
  return same;
}

static void parse_value(Json *json, int depth);

static void refuse_double(Json *json, size_t object, size_t key) {
  size_t members = 0;
  for (size_t k = object + 1; k < key; k = json->tokens[k + 1].next, members++)
    if (same_keys(json, k, key)) broken(json, "a key stands in an object twice");
  if (members >= MOST_MEMBERS) broken(json, "an object with too many entries");
}

static void parse_members(Json *json, Kind kind, int depth) {
  size_t token = add_token(json, kind);
  int close = kind == OBJECT ? '}' : ']';
  if (depth == DEEPEST) broken(json, "too many levels");
  json->at++;
  skip_space(json);
  for (int is_first = 1; peek(json) != close; is_first = 0) {
    if (!is_first) {
      if (peek(json) != ',') broken(json, "a comma or an end is wanted");
      json->at++;
      skip_space(json);
    }
    if (kind == OBJECT) {
      size_t key = json->count;
      parse_string(json);
      refuse_double(json, token, key);
      skip_space(json);
      if (peek(json) != ':') broken(json, "a colon is wanted");
      json->at++;
    }
    parse_value(json, depth + 1);
    skip_space(json);
  }
  json->at++;
  end_token(json, token);
}

static void parse_value(Json *json, int depth) {
  skip_space(json);
  int c = peek(json);
  if (c == '{') parse_members(json, OBJECT, depth);
  else if (c == '[') parse_members(json, ARRAY, depth);
  else if (c == '"') parse_string(json);
  else if (c == '-' || (c >= '0' && c <= '9')) parse_number(json);
  else parse_word(json);
}

static Json parsed(const char *path, const Content *content) {
  Json json = {0};
  json.path = path;
  json.text = (const char *)content->data;
  json.size = content->size;
  parse_value(&json, 0);
  skip_space(&json);
  if (json.at < json.size) broken(&json, "something stands after the end");
  return json;
}

static char *put_utf8(char *to, unsigned code) {
  if (code < 0x80) { *to++ = (char)code; return to; }
  int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  *to++ = (char)((0xff00 >> (more + 1) & 0xff) | code >> 6 * more);
  while (more--) *to++ = (char)(0x80 | (code >> 6 * more & 0x3f));
  return to;
}

static char *decoded(const Json *json, Value value) {
  const Token *token = json->tokens + value;
  char *text = allocate(NULL, token->end - token->start), *to = text;
  Json at = *json; /* whose `at` moves over the escapes, which are known to be right */
  for (at.at = token->start + 1; at.at < token->end - 1;) {
    char c = json->text[at.at++];
    if (c != '\\') { *to++ = c; continue; }
    c = json->text[at.at++];
    const char *names = "bfnrt", *found = strchr(names, c);
    if (c != 'u') { *to++ = found ? "\b\f\n\r\t"[found - names] : c; continue; }
    unsigned code = hex4(&at);
    if (!code) stop(BAD_INPUT, "%s: a text has a NUL", json->path);
    if (code >= 0xd800 && code <= 0xdbff) {
      at.at += 2;
      code = 0x10000 + ((code - 0xd800) << 10) + (hex4(&at) - 0xdc00);
    }
    to = put_utf8(to, code);
  }
  *to = 0;
  return text;
}

/* The text of a value, into a buffer of LONGEST_PATH bytes. */
static const char *text_of(const Json *json, Value value, char *buffer, const char *what) {
  if (!value || json->tokens[value].kind != STRING)
    stop(BAD_INPUT, "%s: %s must be a text", json->path, what);
  char *text = decoded(json, value);
  if (strlen(text) >= LONGEST_PATH) stop(BAD_INPUT, "%s: %s is too long", json->path, what);
  strcpy(buffer, text);
  free(text);
  return buffer;
}

static Value find(const Json *json, Value object, const char *name) {
  if (json->tokens[object].kind != OBJECT) stop(BAD_INPUT, "%s: an object is wanted", json->path);
  for (Value k = object + 1; k < json->tokens[object].next; k = json->tokens[k + 1].next) {
    char *key = decoded(json, k);
    int same = !strcmp(key, name);
    free(key);
    if (same) return k + 1;
  }
  return 0;
}

static Value get(const Json *json, Value object, const char *name, Kind kind) {
  Value found = find(json, object, name);
  if (!found || json->tokens[found].kind != kind)
    stop(BAD_INPUT, "%s: the entry '%s' is missing or of another kind", json->path, name);
  return found;
}

static const char *get_text(const Json *json, Value object, const char *name, char *buffer) {
  return text_of(json, get(json, object, name, STRING), buffer, name);
}

static void require(const Json *json, Value object, const char *name, const char *wanted,
                    const char *hint) {
  char text[LONGEST_PATH];
  if (strcmp(get_text(json, object, name, text), wanted))
    stop(BAD_INPUT, "%s: %s is '%s', not '%s'%s", json->path, name, text, wanted, hint);
}

/* The elements of an array: for (Value k = first(...); k; k = after(...)). */
static Value after(const Json *json, Value array, Value element) {
  Value next = json->tokens[element].next;
  return next < json->tokens[array].next ? next : 0;
}

static Value first(const Json *json, Value array) {
  return array + 1 < json->tokens[array].next ? array + 1 : 0;
}

static size_t whole_of(const Json *json, Value value) {
  const Token *token = json->tokens + value;
  size_t number = 0;
  for (size_t k = token->start; k < token->end; k++) {
    char c = json->text[k];
    if (token->kind != NUMBER || c < '0' || c > '9' || number > (SIZE_MAX - 9) / 10)
      stop(BAD_INPUT, "%s: a size must be a whole number", json->path);
    number = 10 * number + (size_t)(c - '0');
  }
  return number;
}

/* ---- tensors ---- */

static double of_float32(uint64_t bits) {
  uint32_t narrow = (uint32_t)bits;
  float value;
  memcpy(&value, &narrow, sizeof value);
  return value;
}

static double of_bfloat16(uint64_t bits) { return of_float32(bits << 16); }

static double of_float64(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static double of_uint(uint64_t bits) { return (double)bits; }

static double of_int8(uint64_t bits) { return bits > 0x7f ? (double)bits - 0x100 : (double)bits; }

static double of_int16(uint64_t bits) {
  return bits > 0x7fff ? (double)bits - 0x10000 : (double)bits;
}

static double of_float16(uint64_t bits) {
  int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
  double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                : exponent     ? ldexp(1024 + fraction, exponent - 25)
                               : ldexp(fraction, -24);
  return bits >> 15 ? -size : size;
}

typedef struct {
  const char *name;
  size_t bytes;
  int precision; /* bits of the significand; 0 of levels */
  double (*value)(uint64_t bits);
} DType;
static const DType DTYPES[] = {{"float32", 4, 24, of_float32}, {"float16", 2, 11, of_float16},
                               {"bfloat16", 2, 8, of_bfloat16}, {"float64", 8, 53, of_float64},
                               {"uint8", 1, 0, of_uint},        {"int8", 1, 0, of_int8},
                               {"uint16", 2, 0, of_uint},       {"int16", 2, 0, of_int16}};

/* Tolerances that the user gives instead of the pack's. */
typedef struct { int are_given; double atol, rtol; } Limits;

typedef struct {
  char name[LONGEST_NAME], file[LONGEST_PATH];
  const DType *dtype;
  const Limits *limits; /* NULL: the pack's tolerance counts */
  size_t shape[MOST_DIMENSIONS], rank, size; /* size: number of elements */
  unsigned char *wanted, *tolerance;         /* tolerance: float32, NULL if all are 0 */
} Output;

static double element(const DType *dtype, const unsigned char *data, size_t k) {
  uint64_t bits = 0;
  for (size_t b = dtype->bytes; b--;) bits = bits << 8 | data[k * dtype->bytes + b];
  return dtype->value(bits);
}

static size_t bytes_of(const Output *output) { return output->size * output->dtype->bytes; }
/* The most bytes of a result that are read: of the largest type in the place of the smallest. */
static size_t room_of(const Output *output) { return 8 * bytes_of(output); }

static double tolerance_at(const Output *output, size_t k) {
  if (output->limits) {
    double size = fabs(element(output->dtype, output->wanted, k));
    int is_finite = !isnan(size) && !isinf(size); /* others must match */
    return is_finite ? output->limits->atol + output->limits->rtol * size : 0;
  }
  return output->tolerance ? element(&DTYPES[0], output->tolerance, k) : 0;
}

/* Reads a file of the pack, which must have this size and the checksum that `json` gives. */
static unsigned char *checked(const Json *json, const char *folder, const char *file, size_t size,
                              Value object, const char *checksum) {
  char path[LONGEST_PATH], wanted[LONGEST_PATH], got[65];
  if (!is_safe(file)) stop(BAD_INPUT, "%s: '%s' leaves the case's folder", json->path, file);
  join(path, folder, file);
  Content content = content_of(path, size);
  if (!content.is_there) stop(BAD_INPUT, "%s: is missing", path);
  if (content.size != size)
    stop(BAD_INPUT, "%s: has %s than %lu bytes", path, content.size < size ? "fewer" : "more",
         (unsigned long)size);
  sha256(content.data, content.size, got);
  if (strcmp(got, get_text(json, object, checksum, wanted)))
    stop(BAD_INPUT, "%s: does not match its checksum", path);
  return content.data;
}

static void read_shape(const Json *json, Value value, Output *output) {
  Value shape = get(json, value, "shape", ARRAY);
  int is_empty = 0;
  output->size = 1;
  for (Value k = first(json, shape); k; k = after(json, shape, k)) {
    if (output->rank == MOST_DIMENSIONS) stop(BAD_INPUT, "%s: too many dimensions", json->path);
    size_t dim = output->shape[output->rank++] = whole_of(json, k);
    is_empty |= !dim;
    if (dim && output->size > LARGEST_TENSOR / 8 / dim)
      stop(BAD_INPUT, "%s: output '%s' is too large", json->path, output->name);
    output->size *= dim ? dim : 1;
  }
  if (is_empty) output->size = 0;
}

static const DType *dtype_of(const Json *json, Value value) {
  char name[LONGEST_PATH];
  get_text(json, value, "dtype", name);
  for (size_t k = 0; k < sizeof DTYPES / sizeof *DTYPES; k++)
    if (!strcmp(DTYPES[k].name, name)) return DTYPES + k;
  stop(UNSUPPORTED, "%s: outputs of dtype %s cannot be judged here", json->path, name);
  return NULL;
}

static void read_tolerance(const Json *json, const char *folder, Value value, Output *output) {
  char file[LONGEST_PATH];
  Value tolerance = find(json, value, "tolerance");
  if (tolerance && json->tokens[tolerance].kind == NUMBER && !whole_of(json, tolerance)) return;
  text_of(json, tolerance, file, "a tolerance");
  output->tolerance = checked(json, folder, file, 4 * output->size, value, "tolerance_sha256");
  for (size_t k = 0; k < output->size; k++)
    if (!(tolerance_at(output, k) >= 0) || isinf(tolerance_at(output, k)))
      stop(BAD_INPUT, "%s: the tolerance of '%s' is negative, infinite or NaN", json->path,
           output->name);
}

static void read_output(const Json *json, const char *folder, Value value, Output *output) {
  char name[LONGEST_PATH];
  memset(output, 0, sizeof *output);
  get_text(json, value, "name", name);
  if (strlen(name) >= LONGEST_NAME || !is_safe(name) || strchr(name, '/'))
    stop(BAD_INPUT, "%s: '%s' cannot name an output", json->path, name);
  strcpy(output->name, name);
  output->dtype = dtype_of(json, value);
  read_shape(json, value, output);
  get_text(json, value, "file", output->file);
  output->wanted = checked(json, folder, output->file, bytes_of(output), value, "sha256");
  read_tolerance(json, folder, value, output);
}

/* Whether a tolerance is wider than generation allows: 5 % of the output's largest value, or 64
   roundings of a coarser dtype; of levels, 5 % of the distance between them, or one. By wider ones
   a wrong result passes; by a given one as wide as the largest value, zeros do. */
static int is_wide(const Output *output) {
  int precision = output->dtype->precision;
  double widest = 0, largest = 0, limit = precision ? fmax(0.05, ldexp(64, -precision)) : 0.05;
  double low = INFINITY, high = -INFINITY;
  for (size_t k = 0; k < output->size; k++) {
    double value = element(output->dtype, output->wanted, k), size = fabs(value);
    if (!isnan(size) && !isinf(size) && size > largest) largest = size;
    low = fmin(low, value), high = fmax(high, value);
    if (tolerance_at(output, k) > widest) widest = tolerance_at(output, k);
  }
  if (output->limits) limit = 1 - ldexp(1, -40);
  else if (!precision) return output->size && widest > fmax(1, limit * (high - low));
  return widest > limit * (largest > 0 ? largest : 1);
}

typedef struct { Output output[MOST_OUTPUTS]; int count, are_wide; } Answers;

/* Reads outputs, whose tolerances may be too wide only if they are given, or under a reading that
   must be declared. */
static void read_answers(const Json *json, const char *folder, const Limits *limits, Value outputs,
                         int may_be_wide, Answers *answers) {
  if (json->tokens[outputs].kind != ARRAY)
    stop(BAD_INPUT, "%s: outputs must be a list", json->path);
  answers->count = answers->are_wide = 0;
  for (Value k = first(json, outputs); k; k = after(json, outputs, k)) {
    if (answers->count == MOST_OUTPUTS) stop(UNSUPPORTED, "%s: too many outputs", json->path);
    Output *output = &answers->output[answers->count++];
    read_output(json, folder, k, output);
    if (!may_be_wide && is_wide(output))
      stop(BAD_INPUT, "%s: the tolerance of '%s' is too wide to tell right from wrong", json->path,
           output->name);
    if (limits->are_given) output->limits = limits;
    answers->are_wide |= is_wide(output);
  }
}

static void free_answers(Answers *answers) {
  for (int k = 0; k < answers->count; k++) {
    free(answers->output[k].wanted);
    free(answers->output[k].tolerance);
  }
}

/* ---- judging; the rules are those of rnncli.judging ---- */

/* In order of severity among the calls of a case. */
typedef enum {
  PASS, ACCEPTABLE, SKIPPED, MISSING, REFUSED, DIFFERS, ACCEPTED, CRASHED, VERDICTS
} Verdict;
static const char *const NAMES[] = {"pass",    "acceptable", "skipped",  "missing",
                                    "refused", "differs",    "accepted", "crashed"};
static const char *const PLURALS[] = {"pass",    "acceptable", "skipped",  "missing",
                                      "refused", "differ",     "accepted", "crashed"};

/* Over elements, the sum or mean of error / tolerance: of errors away from zero, of errors up. */
enum { OUTWARD, UPWARD, LEANS };
typedef struct { const DType *dtype; double lean[LEANS]; size_t count; } MeanError;

typedef struct {
  Verdict verdict;
  double margin;
  int is_answered; /* whether an element was compared, or the response to an invalid case */
  int has_results; /* of some call */
  MeanError mean;
  char where[2 * LONGEST_PATH];
} Judged;

typedef struct {
  int differs, is_compared; /* is_compared: an element was */
  double margin, lean[LEANS]; /* of `leaning` floats with a tolerance */
  size_t differing, worst, leaning;
  const char *problem;
} OutputVerdict;

typedef struct { Content content[MOST_OUTPUTS]; } Got; /* in the order of the answers */

static double error_at(const Output *output, const unsigned char *got, size_t k, double *margin) {
  double g = element(output->dtype, got, k), w = element(output->dtype, output->wanted, k);
  double tolerance = tolerance_at(output, k), error = fabs(g - w);
  *margin = 0;
  if (g == w || (isnan(g) && isnan(w))) return 0;
  if (isnan(g) || isnan(w) || isinf(g) || isinf(w)) error = INFINITY;
  *margin = tolerance > 0 ? error / tolerance : INFINITY;
  return error;
}

static OutputVerdict judge_output(const Output *output, const Content *got) {
  OutputVerdict found = {0};
  double largest = -1, error, margin;
  if (!got->is_there) found.problem = "is missing";
  else if (got->size < bytes_of(output)) found.problem = "has too few bytes";
  else if (got->size > bytes_of(output)) found.problem = "has too many bytes";
  found.differs = found.problem != NULL;
  if (found.differs) return found;
  found.is_compared = output->size > 0;
  for (size_t k = 0; k < output->size; k++) {
    error = error_at(output, got->data, k, &margin);
    found.differing += margin > 1;
    if (output->dtype->precision && tolerance_at(output, k) > 0 && !isinf(error)) {
      double wanted = element(output->dtype, output->wanted, k);
      double up = (element(output->dtype, got->data, k) - wanted) / tolerance_at(output, k);
      if (!isnan(up)) {
        found.leaning++;
        found.lean[UPWARD] += up;
        found.lean[OUTWARD] += up * ((wanted > 0) - (wanted < 0));
      }
    }
    /* The largest margin; among infinite ones the largest error. */
    if (margin > found.margin || (isinf(margin) && error > largest)) {
      found.margin = margin;
      found.worst = k;
      largest = isinf(margin) ? error : -1;
    }
  }
  found.differs = found.differing > 0;
  return found;
}

static void put(char *where, const char *format, ...) {
  size_t used = strlen(where);
  va_list values;
  va_start(values, format);
  vsnprintf(where + used, 2 * LONGEST_PATH - used, format, values);
  va_end(values);
}

static void put_index(char *where, const Output *output, size_t k) {
  size_t index[MOST_DIMENSIONS];
  for (size_t d = output->rank; d--; k /= output->shape[d]) index[d] = k % output->shape[d];
  put(where, "%s[", output->name);
  for (size_t d = 0; d < output->rank; d++)
    put(where, "%s%lu", d ? "," : "", (unsigned long)index[d]);
  put(where, "]");
}

static void put_named(char *where, const Output *output, const Content *got,
                      const OutputVerdict *found) {
  if (found->problem) {
    put(where, "%s %s: wanted %lu", output->name, found->problem,
        (unsigned long)bytes_of(output));
    if (got->size > room_of(output)) put(where, ", got more than %lu", (unsigned long)room_of(output));
    else if (got->is_there) put(where, ", got %lu", (unsigned long)got->size);
    return;
  }
  put_index(where, output, found->worst);
  put(where, ": got %.9g, expected %.9g +- %.3g", element(output->dtype, got->data, found->worst),
      element(output->dtype, output->wanted, found->worst), tolerance_at(output, found->worst));
  if (found->differs)
    put(where, ", %lu of %lu differ", (unsigned long)found->differing, (unsigned long)output->size);
}

static void put_output(char *where, const Output *output, const Content *got,
                       const OutputVerdict *found) {
  if (*where) put(where, "; ");
  put_named(where, output, got, found);
}

/* Whether all outputs agree with some answers; the margin and where are of the worst. */
static int agrees(const Answers *answers, const Got *got, Judged *judged) {
  int agree = 1;
  judged->margin = 0;
  judged->where[0] = 0;
  judged->mean = (MeanError){NULL, {0, 0}, 0};
  for (int k = 0; k < answers->count; k++) {
    OutputVerdict found = judge_output(&answers->output[k], &got->content[k]);
    judged->is_answered |= found.is_compared;
    agree &= !found.differs;
    if (found.margin > judged->margin) judged->margin = found.margin;
    if (found.leaning) judged->mean.dtype = answers->output[k].dtype;
    judged->mean.count += found.leaning;
    for (int n = 0; n < LEANS; n++) judged->mean.lean[n] += found.lean[n];
  }
  for (int n = 0; n < LEANS && judged->mean.count; n++)
    judged->mean.lean[n] /= (double)judged->mean.count;
  for (int k = 0; k < answers->count; k++) {
    OutputVerdict found = judge_output(&answers->output[k], &got->content[k]);
    int is_worst = found.margin > 0 && found.margin == judged->margin;
    if (found.differs || (agree && is_worst && !*judged->where))
      put_output(judged->where, &answers->output[k], &got->content[k], &found);
  }
  return agree;
}

typedef struct {
  const Json *json;
  Value data_set;
  const char *pack, *results, *prefix; /* the case's folders; "" or "calls/N/" */
  const char *declared;                /* READING=CHOICE of the device, or NULL */
  const Limits *limits;
  int *is_contested;                   /* becomes 1 if the case has that reading */
  const char *refusal; /* the first line of refused.txt, or NULL without that file */
  int must_refuse;
} Call;

static Content result_of(const Call *call, const char *steps, const char *name, size_t size) {
  char path[LONGEST_PATH], file[LONGEST_PATH + LONGEST_NAME];
  sprintf(file, "%s%soutputs/%s.bin", call->prefix, steps, name);
  join(path, call->results, file);
  return content_of(path, size);
}

/* The outputs that are there although the case does not ask for them. */
static int strange_outputs(const Call *call, const Answers *answers, char *where) {
  Value names = get(call->json, 0, "output_names", ARRAY);
  int count = 0;
  for (Value n = first(call->json, names); n; n = after(call->json, names, n)) {
    char name[LONGEST_PATH];
    int is_asked = 0;
    text_of(call->json, n, name, "the name of an output");
    if (strlen(name) >= LONGEST_NAME || !is_safe(name))
      stop(BAD_INPUT, "%s: '%s' cannot name an output", call->json->path, name);
    for (int k = 0; k < answers->count; k++) is_asked |= !strcmp(answers->output[k].name, name);
    Content content = is_asked ? (Content){NULL, 0, 0} : result_of(call, "", name, 0);
    if (content.is_there) put(where, "%s%s was not requested", *where ? "; " : "", name), count++;
    free(content.data);
  }
  return count;
}

/* The choices that a device may declare of READING=CHOICE; 0 if others are acceptable as well. */
static Value declarable(const Json *json, const char *reading) {
  char name[LONGEST_PATH];
  strcpy(name, reading);
  name[strcspn(name, "=")] = 0;
  Value row = find(json, get(json, 0, "readings", OBJECT), name);
  return row ? find(json, row, "declared") : 0;
}

/* The outputs under the reading that the device declares; 0 if they are those of the case. */
static Value declared_outputs(const Call *call) {
  const Json *json = call->json;
  char name[LONGEST_PATH];
  Value choices = call->declared ? declarable(json, call->declared) : 0;
  if (!choices) return 0;
  *call->is_contested = 1;
  const char *choice = strchr(call->declared, '=') + 1;
  Value as = find(json, choices, choice);
  if (as)
    return find(json, get(json, call->data_set, "other_readings", OBJECT),
                text_of(json, as, name, "a reading"));
  strcpy(name, call->declared);
  name[strcspn(name, "=")] = 0;
  require(json, get(json, get(json, 0, "readings", OBJECT), name, OBJECT), "choice", choice, "");
  return 0;
}

static void judge_readings(const Call *call, const Got *got, Judged *judged, char *reading) {
  Value readings = get(call->json, call->data_set, "other_readings", OBJECT);
  const Token *tokens = call->json->tokens;
  for (Value k = readings + 1; k < tokens[readings].next; k = tokens[k + 1].next) {
    Judged other = *judged;
    Answers answers;
    char name[LONGEST_PATH];
    int is_declared = declarable(call->json, text_of(call->json, k, name, "a reading")) > 0;
    read_answers(call->json, call->pack, call->limits, k + 1, is_declared, &answers);
    int agree = agrees(&answers, got, &other), says_nothing = answers.are_wide;
    free_answers(&answers);
    if (!agree || (is_declared && says_nothing)) continue;
    if (is_declared) {
      put(judged->where, "; gives what %s gives: --reading %s judges by that", name, name);
      return;
    }
    *judged = other;
    judged->verdict = says_nothing ? SKIPPED : ACCEPTABLE;
    judged->is_answered &= !says_nothing;
    strcpy(reading, name);
    put(judged->where, "%sas %s has it", *judged->where ? ": " : "", reading);
    return;
  }
}

typedef struct { char name[LONGEST_NAME]; size_t since, place[4]; int is_there; } FirstWrong;

/* Whether a direction begins at the last step. */
static int is_backward(const Json *json, size_t direction, size_t directions) {
  Value attributes = get(json, 0, "attributes", OBJECT), value = find(json, attributes, "direction");
  char name[LONGEST_PATH] = "";
  if (directions > 1) return direction == 1;
  if (value && json->tokens[value].kind == STRING) text_of(json, value, name, "a direction");
  return !strcmp(name, "reverse") || !strcmp(name, "backward");
}

/* Notes where a signal [T, D, N, H] is wrong, if none before it is at as early a step. */
static void note_first(const Json *json, const Output *signal, const Content *got,
                       FirstWrong *first_wrong) {
  const size_t *shape = signal->shape;
  if (signal->rank != 4) return;
  for (size_t d = 0; d < shape[1]; d++)
    for (size_t since = 0; since < shape[0]; since++) {
      size_t t = is_backward(json, d, shape[1]) ? shape[0] - 1 - since : since;
      if (first_wrong->is_there && first_wrong->since <= since) break;
      for (size_t k = 0; k < shape[2] * shape[3]; k++) {
        double margin;
        error_at(signal, got->data, (t * shape[1] + d) * shape[2] * shape[3] + k, &margin);
        if (!(margin > 1)) continue;
        *first_wrong = (FirstWrong){"", since, {t, d, k / shape[3], k % shape[3]}, 1};
        strcpy(first_wrong->name, signal->name);
        break;
      }
    }
}

/* Puts the first wrong signal before all else. */
static void put_first(char *where, const FirstWrong *first_wrong, size_t directions) {
  char others[2 * LONGEST_PATH];
  const size_t *place = first_wrong->place;
  strcpy(others, where);
  *where = 0;
  put(where, "the first wrong signal is %s at t=%lu", first_wrong->name, (unsigned long)place[0]);
  if (directions > 1) put(where, ", direction %lu", (unsigned long)place[1]);
  put(where, ", sequence %lu, unit %lu; %s", (unsigned long)place[2], (unsigned long)place[3],
      others);
}

/* The signals of every step that the device has recorded, which need not be all. */
static void judge_signals(const Call *call, Judged *judged) {
  Value signals = find(call->json, call->data_set, "steps");
  FirstWrong first_wrong = {"", 0, {0, 0, 0, 0}, 0};
  size_t directions = 1;
  if (!signals) return;
  if (call->json->tokens[signals].kind != ARRAY)
    stop(BAD_INPUT, "%s: steps must be a list", call->json->path);
  for (Value k = first(call->json, signals); k; k = after(call->json, signals, k)) {
    Output output;
    read_output(call->json, call->pack, k, &output);
    if (call->limits->are_given) output.limits = call->limits;
    Content got = result_of(call, "steps/", output.name, room_of(&output));
    if (got.is_there) {
      OutputVerdict found = judge_output(&output, &got);
      if (found.differs && !found.problem) {
        note_first(call->json, &output, &got, &first_wrong);
        directions = output.rank == 4 ? output.shape[1] : 1;
      }
      if (found.differs || found.margin > judged->margin) {
        if (judged->verdict == PASS) judged->where[0] = 0;
        if (found.margin > judged->margin) judged->margin = found.margin;
        if (found.differs) judged->verdict = DIFFERS;
        put(judged->where, "%ssteps/", *judged->where ? "; " : "");
        put_named(judged->where, &output, &got, &found);
      }
    }
    free(got.data);
    free(output.wanted);
    free(output.tolerance);
  }
  if (first_wrong.is_there) put_first(judged->where, &first_wrong, directions);
}

static Judged judged_outputs(const Call *call, const Answers *answers, const Got *got, int strange,
                             const char *names, char *reading) {
  Judged judged = {.verdict = DIFFERS};
  int agree = agrees(answers, got, &judged);
  if (agree && !strange) judged.verdict = PASS;
  else if (!strange && !call->declared) judge_readings(call, got, &judged, reading);
  else if (!agree) put(judged.where, "%s%s", *judged.where ? "; " : "", names);
  else judged.where[0] = 0, put(judged.where, "%s; the requested outputs are right", names);
  if (judged.verdict == PASS && answers->are_wide) {
    judged.verdict = SKIPPED;
    judged.is_answered = 0;
  }
  if (declared_outputs(call)) return judged; /* the signals are those of the case's own readings */
  if (judged.verdict == PASS || judged.verdict == DIFFERS) judge_signals(call, &judged);
  return judged;
}

static Judged ended(Verdict verdict, const char *where) {
  Judged judged = {.verdict = verdict, .is_answered = verdict == PASS || verdict == ACCEPTED};
  put(judged.where, "%s", where);
  return judged;
}

/* Judges one call; `reading` receives the reading by which it is acceptable. */
static Judged judge_call(const Call *call, char *reading) {
  Answers answers;
  Got got;
  char names[2 * LONGEST_PATH] = "";
  Judged judged;
  *reading = 0;
  Value declared = declared_outputs(call);
  Value outputs = declared ? declared : get(call->json, call->data_set, "outputs", ARRAY);
  read_answers(call->json, call->pack, call->limits, outputs, declared > 0, &answers);
  int strange = strange_outputs(call, &answers, names), present = strange;
  for (int k = 0; k < answers.count; k++) {
    got.content[k] = result_of(call, "", answers.output[k].name, room_of(&answers.output[k]));
    present += got.content[k].is_there;
  }
  if (call->refusal && present) judged = ended(CRASHED, "refused.txt and outputs are there");
  else if (call->refusal) judged = ended(call->must_refuse ? PASS : REFUSED, call->refusal);
  else if (!present) {
    judged = ended(MISSING, "no results for it");
    if (answers.count)
      put(judged.where, ": no %soutputs/%s.bin", call->prefix, answers.output[0].name);
  }
  else if (call->must_refuse) judged = ended(ACCEPTED, "ran, although invalid");
  else judged = judged_outputs(call, &answers, &got, strange, names, reading);
  for (int k = 0; k < answers.count; k++) free(got.content[k].data);
  free_answers(&answers);
  return judged;
}

/* Whether a call's outputs are those of a reading; of the case, if the reading changes nothing. */
static int follows(const Call *call, const char *reading) {
  Value others = get(call->json, call->data_set, "other_readings", OBJECT);
  Value outputs = find(call->json, others, reading);
  Answers answers;
  Got got;
  Judged judged = {.verdict = PASS};
  if (!outputs) outputs = get(call->json, call->data_set, "outputs", ARRAY);
  read_answers(call->json, call->pack, call->limits, outputs, 0, &answers);
  for (int k = 0; k < answers.count; k++)
    got.content[k] = result_of(call, "", answers.output[k].name, room_of(&answers.output[k]));
  int agree = agrees(&answers, &got, &judged);
  for (int k = 0; k < answers.count; k++) free(got.content[k].data);
  free_answers(&answers);
  return agree;
}

static int is_failure(Verdict verdict) { return verdict > SKIPPED; }

static int is_worse(const Judged *a, const Judged *b) {
  if (a->verdict != b->verdict) return a->verdict > b->verdict;
  return !is_failure(a->verdict) && a->margin > b->margin;
}

static Call call_of(const Call *base, Value data_set, size_t number, char prefix[32]) {
  Call call = *base;
  call.data_set = data_set;
  call.prefix = prefix;
  if (number) sprintf(prefix, "calls/%lu/", (unsigned long)number);
  else *prefix = 0;
  return call;
}

/* The verdict on a case that is acceptable by a reading, which all calls must follow. */
static Judged held_to(const Call *base, Value sets, const char *reading, Judged judged) {
  char prefix[32];
  size_t number = 0;
  for (Value k = first(base->json, sets); k; k = after(base->json, sets, k)) {
    Call call = call_of(base, k, number++, prefix);
    if (follows(&call, reading)) continue;
    judged = ended(DIFFERS, "");
    put(judged.where, "call %lu does not follow %s, by which another call is acceptable",
        (unsigned long)number, reading);
    return judged;
  }
  return judged;
}

/* The mean errors of the calls of right cases. */
typedef struct { MeanError *call; size_t count; } MeanErrors;

/* Judges a case by its worst call; all calls must follow one reading. */
static Judged judge_calls(const Call *base, MeanErrors *means) {
  Value sets = get(base->json, 0, "data_sets", ARRAY);
  char prefix[32], reading[LONGEST_PATH], chosen[LONGEST_PATH] = "";
  Judged worst = {.verdict = PASS, .margin = -1};
  /* Whose sums are exact: its tolerances are those of functions alone, which may lean by more. */
  static const char QUANTISED[] = "DynamicQuantizeLSTM";
  char operator[LONGEST_PATH];
  size_t number = 0, before = means->count;
  int has_results = 0;
  get_text(base->json, 0, "operator", operator);
  for (Value k = first(base->json, sets); k; k = after(base->json, sets, k), number++) {
    Call call = call_of(base, k, number, prefix);
    Judged judged = judge_call(&call, reading);
    has_results |= judged.verdict != MISSING;
    if (is_worse(&judged, &worst)) worst = judged, strcpy(chosen, reading);
    if (!judged.mean.count || !strncmp(operator, QUANTISED, strlen(QUANTISED))) continue;
    means->call = allocate(means->call, (means->count + 1) * sizeof *means->call);
    means->call[means->count++] = judged.mean;
  }
  if (!number) stop(BAD_INPUT, "%s: has no data sets", base->json->path);
  if (worst.verdict == ACCEPTABLE) worst = held_to(base, sets, chosen, worst);
  if (worst.verdict > ACCEPTABLE) means->count = before;
  worst.has_results = has_results;
  return worst;
}

/* ---- the pack ---- */

static void check_digest(const Json *manifest, Content content) {
  static const char END[] = "\n}\n", KEY[] = ",\n\"digest\": \"";
  char digest[LONGEST_PATH], got[65];
  size_t tail = strlen(KEY) + 64 + 1 + strlen(END);
  get_text(manifest, 0, "digest", digest);
  if (content.size > tail && !memcmp(content.data + content.size - tail, KEY, strlen(KEY))) {
    memcpy(content.data + content.size - tail, END, strlen(END)); /* nobody reads it again */
    sha256(content.data, content.size - tail + strlen(END), got);
    if (!strcmp(got, digest)) return;
  }
  stop(BAD_INPUT, "%s: was changed: its digest does not match its content", manifest->path);
}

/* Refuses answers under a reading that the case does not contest: one without a tag in the
   manifest, or the case's own. */
static void check_readings(const Json *json, const Json *manifest, Value record, Value others) {
  char name[LONGEST_PATH], own[LONGEST_PATH], tag[LONGEST_PATH];
  Value tags = get(manifest, record, "tags", ARRAY), chosen = get(json, 0, "readings", OBJECT);
  for (Value k = others + 1; k < json->tokens[others].next; k = json->tokens[k + 1].next) {
    int is_tagged = 0;
    text_of(json, k, name, "a reading");
    char *choice = strchr(name, '=');
    if (!choice) stop(BAD_INPUT, "%s: '%s' is not a reading", json->path, name);
    *choice++ = 0;
    get_text(json, get(json, chosen, name, OBJECT), "choice", own);
    for (Value t = first(manifest, tags); t; t = after(manifest, tags, t)) {
      text_of(manifest, t, tag, "a tag");
      is_tagged |= !strncmp(tag, "reading:", 8) && !strcmp(tag + 8, name);
    }
    if (!is_tagged || !strcmp(choice, own))
      stop(BAD_INPUT, "%s: the case does not contest the reading %s=%s", json->path, name, choice);
  }
}

/* Reads the first line of the device's reason, as much as fits; NULL if it refused nothing. */
static const char *refusal_of(const char *results, char reason[LONGEST_NAME]) {
  char path[LONGEST_PATH];
  join(path, results, "refused.txt");
  Content content = content_of(path, LARGEST_TEXT);
  size_t length = content.size < LONGEST_NAME - 1 ? content.size : LONGEST_NAME - 1;
  if (length) memcpy(reason, content.data, length);
  reason[length] = 0;
  reason[strcspn(reason, "\r\n")] = 0;
  free(content.data);
  return content.is_there ? reason : NULL;
}

typedef struct {
  const char *pack, *results, *declared;
  Limits limits;
  char **ids; /* those to judge; all if there are none */
  int id_count, allows[VERDICTS];
  int count[VERDICTS], cases, found, answered, failing, refusals, is_contested;
  long max_bias; /* 0: not asked */
  MeanErrors means;
} Run;

static Judged judge_case(Run *run, const Json *manifest, Value record, const char *id) {
  char own[LONGEST_PATH], theirs[LONGEST_PATH], path[LONGEST_PATH], reason[LONGEST_NAME];
  char name[LONGEST_PATH + 32], wanted[LONGEST_PATH], got[65], expect[LONGEST_PATH];
  if (!is_safe(id) || strchr(id, '/') || strlen(id) >= LONGEST_NAME)
    stop(BAD_INPUT, "%s: '%s' cannot name a case", manifest->path, id);
  sprintf(name, "test_%s", id);
  join(own, run->pack, name);
  join(theirs, run->results, name);
  join(path, own, "case.json");
  Content content = content_of(path, LARGEST_TEXT);
  if (!content.is_there || content.size > LARGEST_TEXT)
    stop(BAD_INPUT, "%s: is missing or too large", path);
  sha256(content.data, content.size, got);
  sprintf(name, "test_%s/case.json", id);
  if (strcmp(got, get_text(manifest, get(manifest, record, "files", OBJECT), name, wanted)))
    stop(BAD_INPUT, "%s: does not match its checksum in the manifest", path);
  Json json = parsed(path, &content);
  require(&json, 0, "format", "rnncli-raw-1", "");
  require(&json, 0, "id", id, "");
  get_text(&json, 0, "expect", expect);
  int must_refuse = !strcmp(expect, "rejection");
  if (!must_refuse) require(&json, 0, "expect", "result", "");
  Value sets = get(&json, 0, "data_sets", ARRAY);
  for (Value k = first(&json, sets); k; k = after(&json, sets, k))
    check_readings(&json, manifest, record, get(&json, k, "other_readings", OBJECT));
  const char *refusal = refusal_of(theirs, reason);
  Call call = {&json, 0, own, theirs, "", run->declared, &run->limits, &run->is_contested, refusal,
               must_refuse};
  Judged judged = judge_calls(&call, &run->means);
  free(json.tokens);
  free(content.data);
  return judged;
}

/* Whether an id is as a pattern has it, in which `*` stands for any characters. */
static int is_like(const char *id, const char *pattern) {
  const char *star = NULL, *from = id;
  while (*id) {
    if (*pattern == '*') star = pattern++, from = id;
    else if (*pattern == *id) pattern++, id++;
    else if (star) pattern = star + 1, id = ++from;
    else return 0;
  }
  while (*pattern == '*') pattern++;
  return !*pattern;
}

static int is_selected(const Run *run, const char *id, char *seen) {
  int found = !run->id_count;
  for (int k = 0; k < run->id_count; k++)
    if (is_like(id, run->ids[k])) found = seen[k] = 1;
  return found;
}

static void print_case(const char *id, const Judged *judged) {
  printf("%s\t%s\t", NAMES[judged->verdict], id);
  if (isinf(judged->margin)) printf("inf");
  else printf("%.6g", judged->margin);
  putchar('\t');
  print_plain(stdout, judged->where);
  putchar('\n');
}

/* Whether a layout has case.json and .bin files: the others of it have models beside them. */
static int is_raw(const char *layout) {
  static const char *const LAYOUTS[] = {"raw", "ir", "wpt", "tflite", "cmsis"};
  for (size_t k = 0; k < sizeof LAYOUTS / sizeof *LAYOUTS; k++)
    if (!strcmp(layout, LAYOUTS[k])) return 1;
  return 0;
}

static void judge_all(Run *run, const Json *manifest) {
  Value cases = get(manifest, 0, "cases", ARRAY);
  char id[LONGEST_PATH], expect[LONGEST_PATH], *seen = allocate(NULL, (size_t)run->id_count + 1);
  memset(seen, 0, (size_t)run->id_count + 1);
  for (Value k = first(manifest, cases); k; k = after(manifest, cases, k)) {
    if (!is_selected(run, get_text(manifest, k, "id", id), seen)) continue;
    Judged judged = judge_case(run, manifest, k, id);
    run->cases++;
    run->count[judged.verdict]++;
    run->answered += judged.is_answered;
    run->found += judged.has_results;
    run->failing += is_failure(judged.verdict) && !run->allows[judged.verdict];
    get_text(manifest, k, "expect", expect);
    run->refusals += judged.verdict == PASS && !strcmp(expect, "rejection");
    print_case(id, &judged);
  }
  for (int k = 0; k < run->id_count; k++)
    if (!seen[k])
      stop(BAD_INPUT, "%s: has no case '%s'%s", run->pack, run->ids[k],
           run->ids[k][0] == '-' ? "; options come before PACK" : "");
  if (run->declared && !run->is_contested)
    stop(BAD_INPUT, "--reading %.99s: no case has a reading to declare by that name", run->declared);
  free(seen);
}

/* ---- bias; rnncli.judging.comparing.bias has the same numbers ---- */

enum { FEWEST_CALLS = 20, CLIPPED = 20, MOST_DEVIATIONS = 5 };
static const double OF_FUNCTIONS = 0.004;

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Notes for each dtype the larger lean beyond that of sound kernels; returns how many there are,
   or -1 if no dtype has enough calls. */
static int note_biases(const Run *run) {
  static const char *const TOWARD[LEANS][2] = {{"toward zero", "away from zero"}, {"down", "up"}};
  double most = run->max_bias ? (double)run->max_bias : MOST_DEVIATIONS;
  double *value = allocate(NULL, run->means.count * sizeof *value);
  int found = -1;
  for (size_t d = 0; d < sizeof DTYPES / sizeof *DTYPES; d++) {
    double largest = 0;
    char sentence[240];
    for (int lean = 0; lean < LEANS; lean++) {
      double mean = 0, squares = 0, error, excess;
      size_t n = 0, leaning = 0;
      for (size_t k = 0; k < run->means.count; k++)
        if (run->means.call[k].dtype == DTYPES + d) value[n++] = run->means.call[k].lean[lean];
      if (n < FEWEST_CALLS) continue;
      if (found < 0) found = 0;
      qsort(value, n, sizeof *value, by_size);
      double low = value[n / CLIPPED], high = value[n - 1 - n / CLIPPED];
      for (size_t k = 0; k < n; k++) mean += fmin(fmax(value[k], low), high) / (double)n;
      for (size_t k = 0; k < n; k++) {
        double off = fmin(fmax(value[k], low), high) - mean;
        squares += off * off;
        leaning += value[k] * mean > 0;
      }
      error = sqrt(squares / (double)(n - 1) / (double)n);
      excess = fabs(mean) > OF_FUNCTIONS ? (fabs(mean) - OF_FUNCTIONS) / error : 0;
      if (!(excess > most && excess > largest)) continue;
      largest = excess;
      snprintf(sentence, sizeof sentence,
               "biased: errors in %s lean %s, by %.2g of the tolerance in the mean, in %lu of %lu"
               " calls (z = %.1f, %.1f of it beyond what sound functions cause)", DTYPES[d].name,
               TOWARD[lean][mean > 0], fabs(mean), (unsigned long)leaning, (unsigned long)n,
               mean / error, excess);
    }
    if (!(largest > 0)) continue;
    found++;
    if (run->max_bias) printf("%s: fails, since --max-bias is %ld\n", sentence, run->max_bias);
    else printf("%s\n", sentence);
  }
  free(value);
  return found;
}

static int summary(const Run *run) {
  const Limits *limits = &run->limits;
  printf("%s against %s by ", run->results, run->pack);
  if (!limits->are_given) printf("the pack's tolerances");
  else if (!limits->rtol && !limits->atol) printf("exact equality");
  if (limits->rtol) printf("rtol %g%s", limits->rtol, limits->atol ? ", " : "");
  if (limits->atol) printf("atol %g", limits->atol);
  printf("%s%s: %d case%s (%d answered)", run->declared ? ", " : "",
         run->declared ? run->declared : "", run->cases, run->cases == 1 ? "" : "s", run->answered);
  for (int k = 0, some = 0; k < VERDICTS; k++) {
    const char *name = (run->count[k] > 1 ? PLURALS : NAMES)[k];
    if (run->count[k]) printf("%s %d %s", some++ ? "," : ":", run->count[k], name);
  }
  if (run->failing) printf(". %d fail%s\n", run->failing, run->failing == 1 ? "s" : "");
  else printf(run->answered ? ". None fails\n" : ". Nothing was judged\n");
  if (run->refusals)
    fprintf(stderr, "judge: note: only a pack of valid cases shows that the device does not refuse"
                    " everything\n");
  int biases = note_biases(run);
  if (run->failing || (run->max_bias && biases > 0)) return FAILED;
  if (run->max_bias && biases < 0)
    fprintf(stderr, "judge: no dtype has %d calls to judge a bias by, which --max-bias requires\n",
            FEWEST_CALLS);
  return run->answered && (!run->max_bias || biases == 0) ? AGREED : NOTHING_JUDGED;
}

static double limit_of(const char *option, const char *text) {
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end || !(value >= 0) || isinf(value))
    stop(BAD_INPUT, "%s %.99s: expected a number >= 0, such as 1e-5", option, text);
  return value;
}

int main(int argc, char **argv) {
  Run run = {0};
  char path[LONGEST_PATH];
  int k = 1;
  for (; k < argc && !strncmp(argv[k], "--", 2); k++) {
    if (!strcmp(argv[k], "--allow-missing")) run.allows[MISSING] = 1;
    else if (!strcmp(argv[k], "--allow-refused")) run.allows[REFUSED] = 1;
    else if (!strcmp(argv[k], "--reading") && !run.declared && k + 1 < argc) {
      run.declared = argv[++k];
      if (!strchr(run.declared, '=') || strlen(run.declared) >= LONGEST_NAME)
        stop(BAD_INPUT, "--reading %.99s: expected NAME=CHOICE", run.declared);
    } else if (!strcmp(argv[k], "--max-bias") && k + 1 < argc) {
      run.max_bias = strtol(argv[++k], NULL, 10);
      if (run.max_bias < 1) stop(BAD_INPUT, "--max-bias %.99s: expected a number >= 1", argv[k]);
    } else if ((!strcmp(argv[k], "--atol") || !strcmp(argv[k], "--rtol")) && k + 1 < argc) {
      double value = limit_of(argv[k], argv[k + 1]);
      *(argv[k++][2] == 'a' ? &run.limits.atol : &run.limits.rtol) = value;
      run.limits.are_given = 1;
    } else if (!strcmp(argv[k], "--help")) return fputs(USAGE, stdout), AGREED;
    else return fputs(USAGE, stderr), BAD_INPUT;
  }
  if (argc - k < 2) return fputs(USAGE, stderr), BAD_INPUT;
  run.pack = argv[k];
  run.results = argv[k + 1];
  run.ids = argv + k + 2;
  run.id_count = argc - k - 2;
  if (is_nowhere(run.results)) stop(BAD_INPUT, "%s: no such folder", run.results);
  join(path, run.results, "manifest.json");
  Content own = content_of(path, 0);
  if (own.is_there)
    stop(BAD_INPUT, "%s: is a pack, whose outputs are the expected ones; put results into a folder of"
         " their own", run.results);
  join(path, run.pack, "manifest.json");
  Content content = content_of(path, LARGEST_TEXT);
  if (!content.is_there || content.size > LARGEST_TEXT)
    stop(BAD_INPUT, "%s: is missing or too large: %s is not a pack", path, run.pack);
  Json manifest = parsed(path, &content);
  require(&manifest, 0, "format", "rnncli-pack-1", "");
  if (!is_raw(get_text(&manifest, 0, "layout", path)))
    stop(BAD_INPUT, "%s: layout is '%s', not 'raw'; `rnncli convert PACK OUT --format raw` makes a raw pack",
         manifest.path, path);
  check_digest(&manifest, content);
  judge_all(&run, &manifest);
  if (run.cases && !run.found)
    stop(BAD_INPUT, "%s: holds no results, which are test_ID/outputs/Y.bin", run.results);
  int code = summary(&run);
  free(manifest.tokens);
  free(content.data);
  free(run.means.call);
  if (fflush(stdout)) stop(BAD_INPUT, "the output cannot be written");
  return code;
}
