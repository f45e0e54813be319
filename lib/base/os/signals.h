// The signals by which a user or a system asks a process to end: SIGINT, as of Ctrl-C, and SIGTERM.
#pragma once

namespace clnet::os {

/// Has `handler` called for them, but for those that are ignored: as in the background of a script, or under nohup. Only once
/// before restore_end_signals(), and neither while another thread calls one of them.
void catch_end_signals(void (*handler)(int signal));
/// Puts back what they did before.
void restore_end_signals();
/// Of one signal. Also for handlers.
void restore_end_signal(int signal);

/// Sends this process a signal, whichever of its threads takes it.
void signal_self(int signal);

}  // namespace clnet::os
