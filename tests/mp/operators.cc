/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * operators - C++ under yod --shared-heap: the peer reads memory of new in place
 *
 * Two nodes put to each other, from memory of every form of new and of a container.
 */
#define _Noreturn [[noreturn]]
extern "C" {
#include "mp.h"
}

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

constexpr std::size_t length = 200000;

struct alignas(256) Wide {
	unsigned char byte[length / 256 * 256];
};

std::uint64_t direct()
{
	ptlx_stats_t st = {};
	st.struct_size = sizeof st;
	mp_ok(PtlXStats(mp.ni, &st));
	return st.moved_direct_bytes;
}

/* Both nodes: put n bytes of out, which must arrive without another copy. */
void put(const char *what, void *out, std::size_t n)
{
	std::vector<unsigned char> in(n);
	ptl_handle_eq_t eq = mp_queue(8), in_eq = mp_queue(8);
	std::uint64_t before = direct();
	std::memset(out, static_cast<int>(n % 200 + mp.rank), n);
	ptl_handle_md_t from = mp_bind(out, n, eq, 0);
	ptl_handle_md_t to = mp_attach(1, in.data(), n, PTL_MD_OP_PUT, in_eq);
	mp_barrier();
	mp_put(from, 0, n, PTL_NO_ACK_REQ, 1 - mp.rank, 1, 0, 0);
	(void)mp_expect(eq, PTL_EVENT_SEND_END);
	(void)mp_expect(in_eq, PTL_EVENT_PUT_END);
	for (unsigned char byte : in)
		mp_check(byte == n % 200 + 1 - mp.rank, "%s: byte %u", what, byte);
	mp_check(direct() - before == n, "%s: did not come direct", what);
	mp_ok(PtlMDUnlink(from));
	mp_ok(PtlMDUnlink(to));
	mp_barrier();
}

void all_forms()
{
	auto *bytes = new unsigned char[length];
	put("new[]", bytes, length);
	delete[] bytes;
	auto *wide = new Wide;
	mp_check(reinterpret_cast<std::uintptr_t>(wide) % 256 == 0, "new is not aligned");
	put("aligned new", wide, sizeof *wide);
	delete wide;
	auto *wides = new (std::nothrow) Wide[3];
	put("aligned new[]", wides, 3 * sizeof *wides);
	delete[] wides;
	void *raw = ::operator new(length);
	put("operator new", raw, length);
	::operator delete(raw);
	auto unique = std::make_unique<Wide>();
	put("unique_ptr", unique.get(), sizeof *unique);
	std::string text(length, 'x');
	put("string", &text[0], length);
	std::vector<double> doubles;
	for (unsigned i = 0; i < length / 8; i++)
		doubles.push_back(i);
	put("vector", doubles.data(), length);
}

void throw_and_catch()
{
	try {
		std::vector<unsigned char> much(length);
		throw std::runtime_error(std::string(30000, 'y'));
	} catch (const std::exception &e) {
		mp_check(std::strlen(e.what()) == 30000, "what() is cut");
	}
	try {
		volatile std::size_t most = static_cast<std::size_t>(-1) / 4;
		std::free(::operator new(most));
		mp_check(false, "there is memory for all");
	} catch (const std::bad_alloc &) {
	}
	volatile std::size_t too_much = static_cast<std::size_t>(-1) / 4;
	mp_check(!::operator new(too_much, std::nothrow), "nothrow");
}

/* Made before main, destroyed after it. */
std::vector<unsigned char> from_start_to_end(length, 7);

} // namespace

int main()
{
	std::vector<unsigned char> grows;
	mp_start();
	for (unsigned i = 0; i < 5; i++) {
		all_forms();
		throw_and_catch();
		grows.resize(length * (i + 2), 7);
		put("grown", grows.data(), grows.size());
	}
	for (unsigned char byte : from_start_to_end)
		mp_check(byte == 7, "a byte from before main is %u", byte);
	mp_end();
	return 0;
}
