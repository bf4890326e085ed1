/* SPDX-License-Identifier: BSD-3-Clause */
/* The paper's table, and its shapes. */
#include "cci_paper.h"

void cci_figures_latency(struct cci_figures *f, const struct cci_latency *l)
{
	if (f->latencies < CCI_FIGURES)
		f->latency[f->latencies++] = *l;
}

void cci_figures_rate(struct cci_figures *f, const struct cci_rate *r)
{
	if (f->rates < CCI_FIGURES)
		f->rate[f->rates++] = *r;
}

static const struct cci_latency *latency_at(const struct cci_figures *f, uint64_t bytes)
{
	for (unsigned i = 0; i < f->latencies; i++)
		if (f->latency[i].bytes == bytes)
			return &f->latency[i];
	return NULL;
}

static const struct cci_rate *rate_at(const struct cci_figures *f, uint64_t bytes)
{
	for (unsigned i = 0; i < f->rates; i++)
		if (f->rate[i].bytes == bytes)
			return &f->rate[i];
	return NULL;
}

/* ---- the table ---- */

/* Figures of the text of the paper; its curves are not at hand. */
static const struct {
	uint64_t bytes;
	const char *quantity, *uu, *ro, *portals;
} paper[] = {
	{0, "latency_us", "2.83", "2.99", "4.0 to 9.4"},
	{32, "latency_us", "below 3", "", "a jump: second interrupt"},
	{512, "latency_us", "about 3", "", ""},
	{4096, "latency_us", "4.99", "5.26", ""},
	{8, "rate_M_per_s", "1.04", "0.64", "a sixth of CCI"},
	{1024, "rate_M_per_s", "1.04", "0.64", ""},
	{4096, "rate_M_per_s", "below 0.5", "as UU", ""},
};

static void print_latency(struct bench *b, unsigned i, const struct cci_latency *l)
{
	BENCH_ROW(b, BENCH_TEXT("quantity", paper[i].quantity),
		BENCH_COUNT("bytes", paper[i].bytes), BENCH_TEXT("paper_uu", paper[i].uu),
		BENCH_TEXT("paper_ro", paper[i].ro),
		BENCH_TEXT("paper_portals", paper[i].portals),
		BENCH_REAL("uu", l->uu / 1e3, 3), BENCH_REAL("ro", l->ro / 1e3, 3),
		BENCH_REAL("put", l->put / 1e3, 3));
}

static void print_rate(struct bench *b, unsigned i, const struct cci_rate *r)
{
	BENCH_ROW(b, BENCH_TEXT("quantity", paper[i].quantity),
		BENCH_COUNT("bytes", paper[i].bytes), BENCH_TEXT("paper_uu", paper[i].uu),
		BENCH_TEXT("paper_ro", paper[i].ro),
		BENCH_TEXT("paper_portals", paper[i].portals), BENCH_REAL("uu", r->uu, 3),
		BENCH_REAL("ro", r->ro, 3), BENCH_REAL("put", r->put, 3));
}

static void print_table(struct bench *b, const struct cci_figures *f)
{
	for (unsigned i = 0; i < sizeof paper / sizeof paper[0]; i++) {
		const struct cci_latency *l = latency_at(f, paper[i].bytes);
		const struct cci_rate *r = rate_at(f, paper[i].bytes);
		if (paper[i].quantity[0] == 'l' && l)
			print_latency(b, i, l);
		else if (paper[i].quantity[0] == 'r' && r)
			print_rate(b, i, r);
	}
}

/* ---- the shapes ---- */

static void judge(struct bench *b, const char *shape, bool holds, const char *because,
	double measured)
{
	BENCH_ROW(b, BENCH_TEXT("shape", shape),
		BENCH_TEXT("here", holds ? "holds" : "does not hold"),
		BENCH_TEXT("by", because), BENCH_REAL("measured", measured, 3));
}

/* (a) UU is faster than RO, and RO than a put with ACK; the distance shrinks. */
static void judge_order(struct bench *b, const struct cci_figures *f)
{
	const struct cci_latency *small = latency_at(f, 8), *large = latency_at(f, 4096);
	if (!small)
		return;
	judge(b, "a: UU below RO", small->uu < small->ro, "RO per UU, 8 B",
		small->ro / small->uu);
	judge(b, "a: RO below put + ACK", small->ro < small->acked, "RO per ACK, 8 B",
		small->ro / small->acked);
	if (large)
		judge(b, "a: RO comes nearer to UU",
			large->ro / large->uu < small->ro / small->uu,
			"RO per UU, 4096 B", large->ro / large->uu);
}

/* (b), (c) Times are flat while a message costs more than its bytes. */
static void judge_flat(struct bench *b, const struct cci_figures *f)
{
	const struct cci_latency *none = latency_at(f, 0), *some = latency_at(f, 512);
	const struct cci_rate *small = rate_at(f, 8), *kilo = rate_at(f, 1024);
	const struct cci_rate *large = rate_at(f, 4096);
	if (none && some)
		judge(b, "b: latency flat to 512 B", some->uu < 1.15 * none->uu,
			"512 B per 0 B", some->uu / none->uu);
	if (small && kilo)
		judge(b, "c: rate flat to 1 KiB", kilo->uu > 0.87 * small->uu,
			"1024 B per 8 B", kilo->uu / small->uu);
	if (kilo && large)
		judge(b, "c: then limited by bytes", large->uu < 0.6 * kilo->uu,
			"4096 B per 1024 B", large->uu / kilo->uu);
}

/* (d) Acknowledgements cost rate, which bytes hide; (e) CCI beside Portals. */
static void judge_rates(struct bench *b, const struct cci_figures *f)
{
	const struct cci_rate *small = rate_at(f, 8), *large = rate_at(f, 4096);
	if (small)
		judge(b, "d: RO rate 0.6 to 0.65 of UU",
			small->ro > 0.58 * small->uu && small->ro < 0.67 * small->uu,
			"RO per UU, 8 B", small->ro / small->uu);
	if (large)
		judge(b, "d: equal at 4 KiB", large->ro > 0.9 * large->uu,
			"RO per UU, 4096 B", large->ro / large->uu);
	if (small)
		judge(b, "e: CCI ahead of Portals", small->uu > small->put,
			"UU per put, 8 B", small->uu / small->put);
	if (large)
		judge(b, "e: also at 4 KiB", large->uu > large->put, "UU per put, 4096 B",
			large->uu / large->put);
}

void cci_figures_print(struct bench *b, const struct cci_figures *f)
{
	bench_section(b, "paper");
	print_table(b, f);
	bench_section(b, "shapes");
	judge_order(b, f);
	judge_flat(b, f);
	judge_rates(b, f);
}
