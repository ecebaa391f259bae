"""What clients send and receive: requests and error responses over HTTP,
and lines over stdin and stdout.
"""
