/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel types that the BPF programs read, in place of a generated vmlinux.h. They declare only
 * the fields in use; CO-RE (preserve_access_index) relocates each access to the field's offset in
 * the running kernel. Processor-specific types are in arch.bpf.h.
 */
#ifndef PYPROF_KERN_MIN_H
#define PYPROF_KERN_MIN_H

#include <linux/types.h>

#include "arch.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct sched_entity {
	__u64 sum_exec_runtime;	     /* CPU time in ns; updated at each context switch */
	unsigned char sched_delayed; /* asleep, but still in the run queue (6.12 and later) */
};

typedef struct {
	long counter;
} atomic_long_t;

struct percpu_counter {
	long long count;
};

struct file;

struct mm_struct {
	struct percpu_counter rss_stat[4];
	unsigned long total_vm; /* pages */
	struct file *exe_file;
};

struct vm_unmapped_area_info {
	unsigned long length;
};

/* Kernels before 6.2. */
struct mm_rss_stat {
	atomic_long_t count[4];
};

struct mm_struct___6_1 {
	struct mm_rss_stat rss_stat;
};

struct signal_struct {
	atomic_t live; /* threads of the group that have not exited */
};

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

/* A process's number in one of its pid namespaces. */
struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1]; /* level + 1 elements */
};

struct task_io_accounting {
	__u64 rchar, wchar; /* bytes moved by read(2), write(2) and similar calls */
};

struct sched_info {
	unsigned long long run_delay; /* ns in run queues */
};

struct super_block {
	unsigned int s_dev;
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct uprobe;

struct uprobe_task {
	struct uprobe *active_uprobe; /* being single-stepped; only compared */
};

struct task_struct {
	struct sched_entity se;
	unsigned long nvcsw, nivcsw;	/* context switches: voluntary, involuntary */
	unsigned long min_flt, maj_flt; /* page faults */
	struct task_io_accounting ioac;
	struct sched_info sched_info; /* only if the kernel keeps these statistics */
	struct files_struct *files;
	unsigned int flags;
	int pid;  /* user space's tid, in the init pid namespace */
	int tgid; /* user space's pid */
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct signal_struct *signal;
	struct mm_struct *mm;
	struct uprobe_task *utask; /* NULL before the first hit */
	struct thread_struct thread;
};

#pragma clang attribute pop

#endif
